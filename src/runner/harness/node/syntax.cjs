"use strict";
// Parses code without running it: with acorn, after TypeScript's types were stripped where there are any.

const Module = require("module");
const acorn = require("./vendor/acorn.js");

const OPTIONS = { ecmaVersion: "latest", locations: true, allowHashBang: true };
const SCRIPT = { ...OPTIONS, sourceType: "script", allowReturnOutsideFunction: true };

// The syntax tree, as a module or, where it is none, as CommonJS. Throws acorn's SyntaxError with `loc`.
function parse(code) {
  const comments = [];
  try {
    return { tree: acorn.parse(code, { ...OPTIONS, sourceType: "module", onComment: comments }), comments };
  } catch (asModule) {
    try {
      comments.length = 0;
      return { tree: acorn.parse(code, { ...SCRIPT, onComment: comments }), comments };
    } catch (asScript) {
      const further = /^'(import|export)'|'import' and 'export'|await/.test(asScript.message) || asModule.pos >= asScript.pos;
      throw further ? asModule : asScript;
    }
  }
}

// What is wrong with the code: message, line, column (from 1) and the line's text; undefined where it parses.
function problem(code) {
  try {
    parse(code);
    return undefined;
  } catch (error) {
    if (error instanceof RangeError) return { message: "the code is nested too deeply", line: 1, column: 1, text: "" };
    const { line, column } = error.loc;
    const message = error.message.replace(/ \(\d+:\d+\)$/, "");
    return { message, line, column: column + 1, text: code.split(/\r?\n/)[line - 1] ?? "" };
  }
}

// The code without TypeScript's types, positions kept; undefined where it is none or this Node can't strip them.
function withoutTypes(code) {
  if (!Module.stripTypeScriptTypes) return undefined;
  const warn = process.emitWarning;
  process.emitWarning = () => {}; // "… is an experimental feature"
  try {
    return Module.stripTypeScriptTypes(code);
  } catch {
    return undefined;
  } finally {
    process.emitWarning = warn;
  }
}

module.exports = { parse, problem, withoutTypes };
