"use strict";
// What the server is told of an error: its name, its message and the frames of the tool's own code.

const MESSAGE_LIMIT = 64 << 10;
const FRAME = /^\s*at .*?(?:file:\/\/)?\/(?:\S+\/)?tool\/main\.m?js(:\d+:\d+)\)?$/;
const WHERE = /^(?:file:\/\/)?\/(?:\S+\/)?tool\/main\.m?js:(\d+)\n/;

// The last frame for an error that left the tool's code, as JSON text.
function frame(error) {
  const asked = askedFor(error);
  if (asked) return asked;
  return JSON.stringify({
    type: "return",
    kind: "exception",
    exception: name(error),
    message: cut(message(error)),
    traceback: cut(trace(error, new Set())),
  });
}

// The frame of a ToolError or ProtocolError; undefined for any other.
function askedFor(error) {
  const { ProtocolError, ToolError } = require("./omniforge.cjs");
  if (error instanceof ProtocolError) {
    return JSON.stringify({ type: "return", kind: "protocol_error", code: error.code, text: error.text });
  }
  if (!(error instanceof ToolError)) return undefined;
  const data = require("./results.cjs").readable(error.data);
  return JSON.stringify({ type: "return", kind: "tool_error", text: error.text, data });
}

// The whole of an error for people, as a program would print it.
function describe(error) {
  return `${name(error)}: ${message(error)}\n${trace(error, new Set())}`.trimEnd();
}

function isError(error) {
  return error instanceof Error || Object.prototype.toString.call(error) === "[object Error]";
}

function name(error) {
  try {
    return isError(error) ? String(error.name || error.constructor.name) : "Error";
  } catch {
    return "Error";
  }
}

function message(error) {
  try {
    if (isError(error)) return String(error.message).toWellFormed();
    if (typeof error === "string") return error.toWellFormed();
    return require("util").inspect(error, { depth: 2 });
  } catch {
    return "the error can't be shown";
  }
}

function trace(error, seen) {
  if (!isError(error) || seen.has(error)) return "";
  seen.add(error);
  const stack = typeof error.stack === "string" ? error.stack : "";
  const lines = stack.split("\n").filter((line) => FRAME.test(line));
  let text = lines.map((line) => `${line.replace(/(?:file:\/\/)?\/(?:\S+\/)?tool\/main\.m?js/, "/tool/main.js")}\n`).join("");
  const where = WHERE.exec(stack);
  if (where) text = `    at /tool/main.js:${where[1]}\n${text}`;
  for (const inner of Array.isArray(error.errors) ? error.errors : []) {
    text += `One of them: ${name(inner)}: ${message(inner)}\n${trace(inner, seen)}`;
  }
  if (error.cause !== undefined && !seen.has(error.cause)) {
    text += `Caused by ${name(error.cause)}: ${message(error.cause)}\n${trace(error.cause, seen)}`;
  }
  return text;
}

function cut(text) {
  return text.length <= MESSAGE_LIMIT ? text : `${text.slice(0, MESSAGE_LIMIT)}… [truncated]`;
}

module.exports = { askedFor, describe, frame };
