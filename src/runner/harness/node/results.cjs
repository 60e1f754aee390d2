"use strict";
// Makes plain JSON of a returned value, or says which part of it can't be.

const channel = require("./channel.cjs");

// Levels of nesting in a value; the server's JSON reader stops at 128 with all that is around it.
const DEPTH_LIMIT = 100;

// The last frame for what `main` returned, as JSON text.
function frame(result) {
  if (result === undefined || result === null) return '{"type":"return","kind":"nothing"}';
  const expects = channel.state.request.context?.expects;
  if (expects) return limited("value", { value: require("./shapes.cjs").payload(result, expects) });
  const { Result, contentBlocks } = require("./content.cjs");
  if (result instanceof Result) return limited("result", result.members());
  const content = contentBlocks(result);
  if (content) return limited("content", { content: JSON.stringify(content) });
  const value = plain(result);
  if (typeof value === "string") return limited("text", { text: JSON.stringify(value) });
  return limited("value", { value: JSON.stringify(value) });
}

// The frame of a result with these members, each JSON already.
function limited(kind, members) {
  const size = Object.values(members).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (size <= channel.limit()) {
    const parts = Object.entries(members).map(([name, text]) => `,"${name}":${text}`);
    return `{"type":"return","kind":"${kind}"${parts.join("")}}`;
  }
  const message = `the result is ${size} bytes of JSON; the limit is ${channel.limit()} bytes (result_limit)`;
  return JSON.stringify({ type: "return", kind: "exception", exception: "ResultTooLarge", message, traceback: "" });
}

class Refusal extends TypeError {
  constructor(message) {
    super(message);
    this.name = "TypeError";
    this.stack = "";
  }
}

// The value in terms of plain objects, arrays and scalars. Throws an error that names the path.
function plain(value, path = "result") {
  return walk(value, path, new Set());
}

function walk(value, path, above) {
  switch (typeof value) {
    case "string":
      return value.toWellFormed();
    case "boolean":
      return value;
    case "number":
      if (Number.isFinite(value)) return value;
      throw new Refusal(`${path} is ${value}, which JSON has no form for`);
    case "bigint":
      throw new Refusal(`${path} is a BigInt, which JSON has no form for; return Number(…) or String(…) of it`);
    case "undefined":
      return null;
    case "object":
      return value === null ? null : enter(value, path, above);
    default:
      throw new Refusal(`${path} is a ${typeof value}, which JSON has no form for`);
  }
}

function enter(value, path, above) {
  if (above.has(value)) throw new Refusal(`${path} contains itself: a result can't have cycles`);
  if (above.size >= DEPTH_LIMIT) throw new Refusal(`the result is nested more than ${DEPTH_LIMIT} levels deep`);
  above.add(value);
  const made = object(value, path, above);
  above.delete(value);
  return made;
}

function object(value, path, above) {
  if (Array.isArray(value)) return Array.from(value, (item, index) => walk(item, `${path}[${index}]`, above));
  if (value instanceof Number || value instanceof String || value instanceof Boolean) {
    return walk(value.valueOf(), path, above);
  }
  refuse(value, path);
  if (typeof value.toJSON === "function") return walk(value.toJSON(), path, above);
  const made = Object.create(null); // A key may be `__proto__`.
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item !== undefined) made[key.toWellFormed()] = walk(item, step(path, key), above);
  }
  return made;
}

const HINTS = {
  Map: "return Object.fromEntries(…) of it",
  Set: "return [...it]",
  Promise: "await it first",
  Error: "return its message, or throw it",
};

function refuse(value, path) {
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  if (kind === "Date" && Number.isNaN(value.getTime())) throw new Refusal(`${path} is an invalid Date`);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    const hint = "return its text, its base64, or an Image, Audio or EmbeddedResource of it";
    throw new Refusal(`${path} is a ${value.constructor.name}, which JSON has no form for; ${hint}`);
  }
  if (/^(Map|Set|WeakMap|WeakSet|Promise|Error|RegExp|Generator|AsyncGenerator|.* Iterator)$/.test(kind)) {
    const hint = HINTS[kind] ? `; ${HINTS[kind]}` : "";
    throw new Refusal(`${path} is a ${kind}, which JSON has no form for${hint}`);
  }
  const { Content, Result } = require("./content.cjs");
  if (value instanceof Content) {
    throw new Refusal(`${path} is ${value.constructor.name}; return it by itself or in an array`);
  }
  if (value instanceof Result) throw new Refusal(`${path} is Result; return it by itself`);
}

function step(path, key) {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}

// The value, with a text in place of what JSON has no form for.
function readable(value) {
  if (value === undefined) return null;
  try {
    return plain(value);
  } catch {
    return require("util").inspect(value, { depth: 4 }).toWellFormed();
  }
}

module.exports = { frame, plain, readable };
