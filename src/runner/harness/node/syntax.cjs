"use strict";
// Parses code without running it: with acorn, after TypeScript's types were stripped where there are any.

const Module = require("module");
const acorn = require("./vendor/acorn.js");

const TOO_DEEP = "the code is nested too deeply";
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
      const further =
        /^'(import|export)'|'import' and 'export'|await/.test(asScript.message) || asModule.pos >= asScript.pos;
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
    if (error instanceof RangeError) return { message: TOO_DEEP, line: 1, column: 1, text: "" };
    const { line, column } = error.loc;
    const message = error.message.replace(/ \(\d+:\d+\)$/, "");
    return { message, line, column: column + 1, text: lineOf(code, line) };
  }
}

function lineOf(code, line) {
  return (code.split(/\r?\n/)[line - 1] ?? "").slice(0, 500);
}

// The code without TypeScript's types, positions kept: `{code}`, or `{problem}` where it is none or this Node can't.
function strip(code) {
  if (!Module.stripTypeScriptTypes) {
    const message = `TypeScript needs Node 22.18 or newer; this is ${process.version}`;
    return { problem: { message, line: 1, column: 1, text: lineOf(code, 1) } };
  }
  const warn = process.emitWarning;
  process.emitWarning = () => {}; // "… is an experimental feature"
  try {
    return { code: Module.stripTypeScriptTypes(code) };
  } catch (error) {
    return { problem: problem(code) ? located(error, code) : { message: error.message, line: 1, column: 1, text: "" } };
  } finally {
    process.emitWarning = warn;
  }
}

// Node names the place of a TypeScript error only in the text of its stack.
function located(error, code) {
  const line = Number(/:(\d+)\n/.exec(error.stack ?? "")?.[1] ?? 1);
  const text = lineOf(code, line);
  return { message: error.message.trim().split("\n")[0].trim() || "no TypeScript", line, column: 1, text };
}

// The code without types; undefined where it can't be had.
function withoutTypes(code) {
  return strip(code).code;
}

module.exports = { TOO_DEEP, parse, problem, strip, withoutTypes };
