"use strict";
// Content blocks that a tool may return, as MCP writes them.

const SIGNATURES = [
  ["89504e470d0a1a0a", "image/png"],
  ["ffd8ff", "image/jpeg"],
  ["47494638", "image/gif"],
  ["424d", "image/bmp"],
  ["3c737667", "image/svg+xml"],
  ["494433", "audio/mpeg"],
  ["fffb", "audio/mpeg"],
  ["4f676753", "audio/ogg"],
  ["664c6143", "audio/flac"],
];

// A content block. Every kind takes `annotations` ({ audience, priority, lastModified }) and `meta` (an object).
class Content {
  describe({ annotations, meta } = {}) {
    if (annotations != null) this.annotations = checkedAnnotations(annotations);
    if (meta != null) this.meta = object(meta, "meta");
  }
  block() {
    return { ...this.body(), annotations: this.annotations, _meta: this.meta };
  }
}

class Text extends Content {
  constructor(text, options = {}) {
    super();
    this.text = String(text);
    this.describe(options);
  }
  body() {
    return { type: "text", text: this.text };
  }
  summary() {
    return this.text;
  }
}

class Media extends Content {
  constructor(type, data, options = {}) {
    super();
    const { mimeType, ...rest } = typeof options === "string" ? { mimeType: options } : (options ?? {});
    const bytes = toBytes(data, new.target.name);
    this.type = type;
    this.data = bytes.toString("base64");
    this.mimeType = mimeType || guess(bytes, type);
    this.size = bytes.length;
    this.describe(rest);
  }
  body() {
    return { type: this.type, data: this.data, mimeType: this.mimeType };
  }
  summary() {
    return `[${this.type}: ${this.mimeType}, ${this.size} bytes]`;
  }
}

class Image extends Media {
  constructor(data, options) {
    super("image", data, options);
  }
}

class Audio extends Media {
  constructor(data, options) {
    super("audio", data, options);
  }
}

class ResourceLink extends Content {
  constructor(uri, options = {}) {
    super();
    if (typeof options === "string") options = { name: options };
    this.uri = String(uri);
    this.name = String(options.name ?? (this.uri.replace(/\/+$/, "").split("/").pop() || this.uri));
    for (const key of ["title", "description", "mimeType"]) if (options[key] != null) this[key] = String(options[key]);
    if (options.size != null && !(Number.isSafeInteger(options.size) && options.size >= 0)) {
      throw new TypeError(`the size of a ResourceLink is a number of bytes, not ${String(options.size)}`);
    }
    this.size = options.size ?? undefined;
    this.describe(options);
  }
  body() {
    const { uri, name, title, description, mimeType, size } = this;
    return { type: "resource_link", uri, name, title, description, mimeType, size };
  }
  summary() {
    return `[resource: ${this.name}, ${this.uri}]`;
  }
}

class EmbeddedResource extends Content {
  constructor(uri, { text, blob, mimeType, ...options } = {}) {
    super();
    if ((text === undefined) === (blob === undefined)) {
      throw new TypeError("EmbeddedResource takes either text or blob");
    }
    this.resource = { uri: String(uri), mimeType };
    if (text !== undefined) this.resource.text = String(text);
    else this.resource.blob = toBytes(blob, "EmbeddedResource").toString("base64");
    this.describe(options);
  }
  body() {
    return { type: "resource", resource: this.resource };
  }
  summary() {
    return `[resource: ${this.resource.uri}]`;
  }
}

// A whole result: `content` (a block, a text, or an array of them), a `structured` value beside it, `meta` (an object).
// What is left out is made from the rest: without content, the text is the structured value's JSON.
class Result {
  constructor({ content, structured, meta } = {}) {
    this.content = content;
    this.structured = structured;
    if (meta != null) this.meta = object(meta, "meta");
  }

  // The members of its frame, each as JSON.
  members() {
    const members = {};
    if (this.content != null) {
      const items = Array.isArray(this.content) ? this.content : [this.content];
      members.content = JSON.stringify(blocks(items, "result.content"));
    }
    if (this.structured != null) members.structured = JSON.stringify(plain(this.structured, "result.structured"));
    if (this.meta !== undefined) members.meta = JSON.stringify(this.meta);
    return members;
  }
}

// The blocks of a returned Content or an array that holds one; undefined where the result is something else.
function contentBlocks(result) {
  const items = result instanceof Content ? [result] : result;
  if (!Array.isArray(items) || !items.some((item) => item instanceof Content)) return undefined;
  return blocks(items, "result");
}

// The blocks of content, texts and other values, whose JSON becomes their text; a text is always among them.
function blocks(items, path) {
  const contents = Array.from(items, (item, index) => content(item, `${path}[${index}]`));
  const made = contents.map((item) => plain(item.block(), path));
  if (!made.some((block) => block.type === "text")) {
    made.push({ type: "text", text: contents.map((item) => item.summary()).join("\n").toWellFormed() || "(no output)" });
  }
  return made;
}

function content(item, path) {
  if (item instanceof Content) return item;
  if (item instanceof Result) throw new TypeError(`${path} is a Result; return it by itself`);
  return new Text(typeof item === "string" ? item : JSON.stringify(plain(item, path)));
}

const ANNOTATIONS = { audience: "audience", priority: "priority", lastModified: "lastModified", last_modified: "lastModified" };

function checkedAnnotations(given) {
  const made = {};
  for (const [key, value] of Object.entries(object(given, "annotations"))) {
    if (!Object.hasOwn(ANNOTATIONS, key)) {
      throw new TypeError(`annotations have no ${key}; they have audience, priority and lastModified`);
    }
    made[ANNOTATIONS[key]] = value;
  }
  if (typeof made.audience === "string") made.audience = [made.audience];
  const { audience = [], priority = 0, lastModified = "" } = made;
  if (!Array.isArray(audience) || !audience.every((one) => one === "user" || one === "assistant")) {
    throw new TypeError(`the audience is an array of "user" and "assistant", not ${JSON.stringify(audience)}`);
  }
  if (typeof priority !== "number" || !(priority >= 0 && priority <= 1)) {
    throw new RangeError(`the priority is a number from 0 to 1, not ${JSON.stringify(priority)}`);
  }
  if (typeof lastModified !== "string") {
    throw new TypeError("lastModified is a Date, or its ISO 8601 text");
  }
  return made;
}

function plain(value, path) {
  return require("./results.cjs").plain(value, path);
}

function object(value, path) {
  const made = plain(value, path);
  if (made === null || typeof made !== "object" || Array.isArray(made)) {
    throw new TypeError(`${path} is an object, not ${Array.isArray(made) ? "an array" : typeof made}`);
  }
  return made;
}

function toBytes(data, name) {
  if (typeof data === "string") {
    if (data.length % 4 === 1 || !/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(data)) {
      throw new TypeError(`${name} takes bytes or their base64; this string is no base64`);
    }
    return Buffer.from(data, "base64");
  }
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return Buffer.from(data);
  throw new TypeError(`${name} takes bytes or their base64, not a ${typeof data}`);
}

function guess(bytes, type) {
  if (bytes.toString("latin1", 0, 4) === "RIFF") {
    return bytes.toString("latin1", 8, 12) === "WAVE" ? "audio/wav" : "image/webp";
  }
  const start = bytes.toString("hex", 0, 8);
  const known = SIGNATURES.find(([signature]) => start.startsWith(signature));
  if (known) return known[1];
  throw new TypeError(`the kind of ${type} can't be told from its bytes; pass its MIME type`);
}

module.exports = { Audio, Content, EmbeddedResource, Image, ResourceLink, Result, Text, contentBlocks };
