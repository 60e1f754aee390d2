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

class Content {}

class Text extends Content {
  constructor(text) {
    super();
    this.text = String(text);
  }
  block() {
    return { type: "text", text: this.text };
  }
  summary() {
    return this.text;
  }
}

class Media extends Content {
  constructor(type, data, mimeType) {
    super();
    const bytes = toBytes(data, new.target.name);
    this.type = type;
    this.data = bytes.toString("base64");
    this.mimeType = (typeof mimeType === "object" && mimeType ? mimeType.mimeType : mimeType) || guess(bytes, type);
    this.size = bytes.length;
  }
  block() {
    return { type: this.type, data: this.data, mimeType: this.mimeType };
  }
  summary() {
    return `[${this.type}: ${this.mimeType}, ${this.size} bytes]`;
  }
}

class Image extends Media {
  constructor(data, mimeType) {
    super("image", data, mimeType);
  }
}

class Audio extends Media {
  constructor(data, mimeType) {
    super("audio", data, mimeType);
  }
}

class ResourceLink extends Content {
  constructor(uri, options = {}) {
    super();
    if (typeof options === "string") options = { name: options };
    this.uri = String(uri);
    this.name = options.name ?? (this.uri.replace(/\/+$/, "").split("/").pop() || this.uri);
    this.description = options.description;
    this.mimeType = options.mimeType;
  }
  block() {
    const { uri, name, description, mimeType } = this;
    return { type: "resource_link", uri, name, description, mimeType };
  }
  summary() {
    return `[resource: ${this.name}, ${this.uri}]`;
  }
}

class EmbeddedResource extends Content {
  constructor(uri, { text, blob, mimeType } = {}) {
    super();
    if ((text === undefined) === (blob === undefined)) {
      throw new TypeError("EmbeddedResource takes either text or blob");
    }
    this.resource = { uri: String(uri), mimeType };
    if (text !== undefined) this.resource.text = String(text);
    else this.resource.blob = toBytes(blob, "EmbeddedResource").toString("base64");
  }
  block() {
    return { type: "resource", resource: this.resource };
  }
  summary() {
    return `[resource: ${this.resource.uri}]`;
  }
}

// The blocks of a returned Content or array of them; undefined where the result is something else.
function contentBlocks(result) {
  const items = result instanceof Content ? [result] : result;
  if (!Array.isArray(items) || !items.some((item) => item instanceof Content)) return undefined;
  const blocks = items.map((item, index) => {
    if (typeof item === "string") return new Text(item).block();
    if (item instanceof Content) return item.block();
    throw new TypeError(`result[${index}] is a ${typeof item}; an array of content holds content and strings only`);
  });
  if (!blocks.some((block) => block.type === "text")) {
    blocks.push({ type: "text", text: items.map((item) => item.summary()).join("\n") });
  }
  return blocks;
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

module.exports = { Audio, Content, EmbeddedResource, Image, ResourceLink, Text, contentBlocks };
