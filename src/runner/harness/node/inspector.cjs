"use strict";
// Tells from the syntax tree of JavaScript what it is: style, description, schema, imports. Never runs the code.

const { builtinModules } = require("module");
const jsdoc = require("./jsdoc.cjs");
const syntax = require("./syntax.cjs");

// The answer: `inspected` or `code_error`.
function inspect(code, language) {
  try {
    return analyse(code, language);
  } catch (error) {
    if (error instanceof RangeError)
      error.problem = syntax.problem(code) ?? { message: syntax.TOO_DEEP, line: 1, column: 1 };
    if (!error.problem) throw error;
    return { type: "code_error", ...error.problem };
  }
}

function analyse(code, language) {
  const { tree, comments } = parse(code, language);
  const { main, exported } = findMain(tree);
  const warnings = [];
  const imports = importsOf(tree);
  const answer = {
    type: "inspected",
    style: exported ? "function" : "script",
    input_schema: null,
    output_schema: null,
    description: null,
    dependencies: [],
    requires_python: null,
    imports,
    third_party: imports.filter((name) => !builtinModules.includes(name) && name !== "omniforge"),
    // Built-in modules alone: to have loaded one shows nowhere.
    preload: imports.filter((name) => builtinModules.includes(name)).map((name) => [name, []]),
    warnings,
  };
  const leading = comments.find((one) => one.type === "Block" && /^(#!.*\n)?\s*$/.test(code.slice(0, one.start)));
  const own = exported && before(comments, exported, code);
  answer.description = jsdoc.firstParagraph(own) ?? jsdoc.firstParagraph(leading?.value);
  if (exported) {
    answer.input_schema = jsdoc.inputSchema(main, own ?? leading?.value);
    warnOfCalls(tree, warnings);
  } else if (tree.body.some((node) => node.type === "FunctionDeclaration" && node.id.name === "main")) {
    warnings.push("`main` is not exported, so the code runs as a script; export it to get the arguments passed");
  }
  return answer;
}

function parse(code, language) {
  const asJavaScript = language === "typescript" ? { message: "" } : syntax.problem(code);
  if (!asJavaScript) return syntax.parse(code);
  const stripped = syntax.strip(code);
  if (language === "typescript") {
    if (stripped.problem) throw Object.assign(new Error(), { problem: stripped.problem });
  } else if (stripped.problem) {
    throw Object.assign(new Error(), { problem: asJavaScript });
  }
  const problem = syntax.problem(stripped.code);
  if (problem) throw Object.assign(new Error(), { problem });
  return syntax.parse(stripped.code);
}

// The exported `main` (its function, where the tree shows it) and the statement that exports it.
function findMain(tree) {
  const named = new Map();
  for (const node of tree.body) {
    const declared = node.type === "ExportNamedDeclaration" ? node.declaration : node;
    for (const [name, value] of declarations(declared)) named.set(name, { value, node });
  }
  let byDefault;
  for (const node of tree.body) {
    const found = exportOf(node, named);
    if (!found) continue;
    if (found.name === "main") return found;
    byDefault = found;
  }
  return byDefault ?? {};
}

function declarations(node) {
  if (node?.type === "FunctionDeclaration" && node.id) return [[node.id.name, node]];
  if (node?.type !== "VariableDeclaration") return [];
  return node.declarations.filter((one) => one.id.type === "Identifier").map((one) => [one.id.name, one.init]);
}

function exportOf(node, named) {
  switch (node.type) {
    case "ExportNamedDeclaration": {
      const direct = declarations(node.declaration).find(([name]) => name === "main");
      if (direct) return callable(direct[1], named, "main", node);
      for (const name of ["main", "default"]) {
        const specifier = node.specifiers.find((one) => (one.exported.name ?? one.exported.value) === name);
        if (specifier && node.source) return { main: undefined, exported: node, name };
        if (specifier) return callable(specifier.local, named, name, node);
      }
      return undefined;
    }
    case "ExportDefaultDeclaration":
      return callable(node.declaration, named, "default", node);
    case "ExpressionStatement":
      return assignmentOf(node, named);
    default:
      return undefined;
  }
}

// `exports.main = …`, `module.exports.main = …`, `module.exports = …`, also chained.
function assignmentOf(statement, named) {
  let found;
  for (let node = statement.expression; node?.type === "AssignmentExpression"; node = node.right) {
    const target = path(node.left);
    let value = node.right;
    while (value.type === "AssignmentExpression") value = value.right;
    if (target === "exports.main" || target === "module.exports.main")
      found ??= callable(value, named, "main", statement);
    if (target === "module.exports") found ??= callable(value, named, "default", statement);
  }
  return found;
}

function path(node) {
  if (node.type === "Identifier") return node.name;
  if (node.type !== "MemberExpression" || (node.computed && node.property.type !== "Literal")) return "";
  return `${path(node.object)}.${node.property.name ?? node.property.value}`;
}

const FUNCTIONS = ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"];

// The export, where its value may be a function.
function callable(value, named, name, exported) {
  for (let steps = 0; value?.type === "Identifier" && named.has(value.name) && steps < 10; steps++) {
    const target = named.get(value.name);
    if (FUNCTIONS.includes(target.value?.type)) exported = target.node;
    value = target.value;
  }
  if (FUNCTIONS.includes(value?.type)) return { main: value, exported, name };
  if (value?.type === "ObjectExpression") {
    const property = value.properties.find(
      (one) => one.type === "Property" && (one.key.name ?? one.key.value) === "main",
    );
    return property && callable(property.value, named, name, exported);
  }
  const opaque = ["Identifier", "CallExpression", "MemberExpression", "ConditionalExpression", "AwaitExpression"];
  return opaque.includes(value?.type) ? { main: undefined, exported, name } : undefined;
}

// The text of the JSDoc comment right before a statement.
function before(comments, node, code) {
  const near = comments.filter((one) => one.end <= node.start && code.slice(one.end, node.start).trim() === "");
  const last = near[near.length - 1];
  return last?.type === "Block" && last.value.startsWith("*") ? last.value : undefined;
}

function* nodes(tree, enters = () => true) {
  const waiting = [tree];
  while (waiting.length) {
    const node = waiting.pop();
    if (typeof node.type === "string") yield node;
    for (const child of Object.values(node)) {
      if (child && typeof child === "object" && !(child instanceof RegExp) && (Array.isArray(child) || enters(child))) {
        waiting.push(child);
      }
    }
  }
}

function importsOf(tree) {
  const names = new Set();
  for (const node of nodes(tree)) {
    const requires = node.type === "CallExpression" && path(node.callee) === "require";
    const source = requires ? node.arguments[0] : node.source;
    if (
      source?.type !== "Literal" ||
      typeof source.value !== "string" ||
      /^[./]|^[a-z]+:\/\/|^data:/.test(source.value)
    )
      continue;
    const parts = source.value.replace(/^node:/, "").split("/");
    names.add(parts[0].startsWith("@") ? parts.slice(0, 2).join("/") : parts[0]);
  }
  return [...names].sort();
}

function warnOfCalls(tree, warnings) {
  const outside = (node) => !FUNCTIONS.includes(node.type);
  for (const node of nodes(tree, outside)) {
    if (node.type === "CallExpression" && node.callee.type === "Identifier" && node.callee.name === "main") {
      warnings.push(
        `line ${node.loc.start.line}: this call of \`main\` runs in addition to the call with the arguments`,
      );
    }
  }
}

module.exports = { inspect };
