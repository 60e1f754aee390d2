"use strict";
// Loads the tool's code as what it is: an ES module, a CommonJS module, or either after its types were stripped.

const Module = require("module");
const fs = require("fs");
const vm = require("vm");

const TOOL = "file:///tool/main.mjs";
const OMNIFORGE = require.resolve("./omniforge.cjs");
const PARAMETERS = ["exports", "require", "module", "__filename", "__dirname"];

const environment = process.env.OMNIFORGE_ENVIRONMENT;

// What the code exports. `asProgram`: it finds itself to be the main module.
async function load(code, asProgram = false) {
  resolveOmniforge();
  if (isCommonJs(code)) return loadCommonJs(code, asProgram);
  try {
    return await loadModule(code);
  } catch (error) {
    const problem = error instanceof SyntaxError ? require("./syntax.cjs").problem(code) : undefined;
    if (!problem) throw error;
    const javaScript = require("./syntax.cjs").withoutTypes(code);
    if (javaScript !== undefined) return load(javaScript, asProgram);
    error.message = `${problem.message} (line ${problem.line}, column ${problem.column})`;
    error.stack = `/tool/main.js:${problem.line}\n`;
    throw error;
  }
}

function isCommonJs(code) {
  try {
    vm.compileFunction(code, PARAMETERS, { filename: "/tool/main.js" });
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

function resolveOmniforge() {
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (request, ...rest) {
    return request === "omniforge" ? OMNIFORGE : resolve.call(this, request, ...rest);
  };
}

function loadCommonJs(code, asProgram) {
  let directory = "/tool";
  if (/\bimport\s*\(/.test(code)) {
    if (Module.registerHooks) hook(code);
    else directory = moduleDirectory();
  }
  const filename = `${directory}/main.js`;
  const module = new Module(filename, null);
  module.filename = filename;
  module.paths = environment ? [`${environment}/node_modules`] : [];
  process.mainModule = asProgram ? module : undefined;
  module._compile(code, filename, "commonjs");
  module.loaded = true;
  return module.exports;
}

function loadModule(code) {
  if (Module.registerHooks) {
    hook(code);
    return import(TOOL);
  }
  const file = `${moduleDirectory()}/main.mjs`;
  fs.writeFileSync(file, code);
  return import(`file://${file}`);
}

// Node 22.15 and newer: the module comes from memory, its packages from the environment.
function hook(code) {
  Module.registerHooks({
    resolve(specifier, context, next) {
      if (specifier === TOOL) return { url: TOOL, format: "module", shortCircuit: true };
      if (specifier === "omniforge") {
        return { url: `file://${OMNIFORGE}`, format: "commonjs", shortCircuit: true };
      }
      const ours = environment && context.parentURL && context.parentURL.startsWith("file:///tool/");
      return next(specifier, ours ? { ...context, parentURL: `file://${environment}/main.mjs` } : context);
    },
    load(url, context, next) {
      return url === TOOL ? { format: "module", source: code, shortCircuit: true } : next(url, context);
    },
  });
}

// Older Node loads modules from files alone. The directory lies in shared memory, not in the tool's working
// directory, and finds the environment's packages through links: Node looks in the `node_modules` of each parent.
function moduleDirectory() {
  const root = fs.existsSync("/dev/shm") ? "/dev/shm" : require("os").tmpdir();
  const outer = fs.mkdtempSync(`${root}/omniforge-`);
  const inner = `${outer}/tool`;
  fs.mkdirSync(`${inner}/node_modules/omniforge`, { recursive: true });
  fs.writeFileSync(`${inner}/node_modules/omniforge/package.json`, '{"exports":"./index.cjs"}');
  fs.symlinkSync(OMNIFORGE, `${inner}/node_modules/omniforge/index.cjs`);
  if (environment) fs.symlinkSync(`${environment}/node_modules`, `${outer}/node_modules`);
  return inner;
}

module.exports = { isCommonJs, load };
