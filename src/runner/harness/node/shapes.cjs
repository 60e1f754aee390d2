"use strict";
// What `main` of a saved resource, prompt or completion returned, in the one shape that the server reads.

const content = require("./content.cjs");
const results = require("./results.cjs");

// The JSON text of a result of what is expected: a `resource`, a `prompt` or a `completion`.
function payload(result, expects) {
  const shapes = { resource: parts, prompt, completion: suggestions };
  return JSON.stringify(shapes[expects](result));
}

const isBytes = (value) => ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
const isPart = (value) => value instanceof content.Content || isBytes(value);

function parts(result) {
  if (typeof result === "string" || isPart(result)) return [part(result, "result")];
  if (Array.isArray(result) && result.some(isPart)) return result.map((item, index) => part(item, `result[${index}]`));
  return [{ text: JSON.stringify(results.plain(result)), mimeType: "application/json" }];
}

function part(value, path) {
  if (typeof value === "string") return { text: value.toWellFormed() };
  if (isBytes(value)) {
    const bytes = ArrayBuffer.isView(value) ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : Buffer.from(value);
    return { blob: bytes.toString("base64") };
  }
  if (value instanceof content.Text) return { text: value.text.toWellFormed() };
  if (value instanceof content.EmbeddedResource) return value.resource;
  if (value instanceof content.Image || value instanceof content.Audio) return { blob: value.data, mimeType: value.mimeType };
  throw new TypeError(`${path} is ${named(value)}; a resource holds strings, bytes, Text, Image, Audio and EmbeddedResource`);
}

function prompt(result) {
  if (isObject(result) && "messages" in result) {
    const made = { messages: messages(result.messages) };
    if (result.description != null) made.description = String(result.description);
    return made;
  }
  return { messages: messages(result) };
}

function messages(result) {
  if (!Array.isArray(result)) return message(result, "result");
  return result.flatMap((item, index) => message(item, `result[${index}]`));
}

// The messages that one item stands for: one for each block of its content.
function message(item, path) {
  let role = "user";
  let held = item;
  if (isObject(item) && "content" in item) {
    const unknown = Object.keys(item).find((key) => key !== "role" && key !== "content");
    if (unknown !== undefined) throw new TypeError(`${path} has the key ${unknown}; a message has role and content`);
    role = item.role ?? "user";
    held = item.content;
    path += ".content";
    if (role !== "user" && role !== "assistant") {
      throw new RangeError(`${path} is of the role ${String(role)}; use user or assistant`);
    }
  }
  return (Array.isArray(held) ? held : [held]).map((value) => ({ role, content: block(value, path) }));
}

function block(value, path) {
  if (typeof value === "string") return { type: "text", text: value.toWellFormed() };
  if (value instanceof content.Content) return value.block();
  if (isObject(value) && typeof value.type === "string") return results.plain(value);
  const held = "strings, Text, Image, Audio, ResourceLink, EmbeddedResource and objects with a type";
  throw new TypeError(`${path} is ${named(value)}; a message holds ${held}`);
}

function suggestions(result) {
  if (!Array.isArray(result)) throw new TypeError(`a completion returns an array of strings, not ${named(result)}`);
  return results.plain(result).map((item) => (typeof item === "string" ? item : JSON.stringify(item)));
}

function isObject(value) {
  return typeof value === "object" && value !== null && !(value instanceof content.Content);
}

function named(value) {
  if (value === null || value === undefined) return String(value);
  return `a ${typeof value === "object" ? (value.constructor?.name ?? "object") : typeof value}`;
}

module.exports = { payload };
