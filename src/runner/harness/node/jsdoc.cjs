"use strict";
// Reads JSDoc comments: the description, and the input schema from `@param {type} args.name text` and destructuring.

const TYPES = {
  string: { type: "string" },
  number: { type: "number" },
  integer: { type: "integer" },
  int: { type: "integer" },
  boolean: { type: "boolean" },
  bool: { type: "boolean" },
  object: { type: "object" },
  array: { type: "array" },
  null: { type: "null" },
  any: {},
  unknown: {},
  "*": {},
};

// The lines of a comment without their stars.
function lines(comment) {
  return comment.split("\n").map((line) => line.replace(/^\s*\*+ ?/, "").trimEnd());
}

// The first paragraph on one line; null where there is none.
function firstParagraph(comment) {
  if (!comment) return null;
  const text = lines(comment).join("\n").split(/^\s*@/m)[0];
  const paragraph = text
    .split(/\n\s*\n/)
    .map((one) => one.split(/\s+/).filter(Boolean).join(" "))
    .find(Boolean);
  return paragraph ?? null;
}

// The schema of the arguments, as far as the parameter and the comment tell; null where they tell nothing.
function inputSchema(main, comment) {
  const parameter = main?.params[0];
  const pattern = parameter?.type === "AssignmentPattern" ? parameter.left : parameter;
  const properties = {};
  const required = [];
  let open = false;
  for (const [name, schema, rest] of destructured(pattern)) {
    if (rest) open = true;
    else properties[name] = schema;
  }
  const destructs = pattern?.type === "ObjectPattern";
  for (const tag of tags(comment)) {
    const [root, name, ...deeper] = tag.name.split(".");
    const key = name ?? (destructs && root in properties ? root : undefined);
    if (key === undefined || deeper.length || (pattern?.type === "Identifier" && root !== pattern.name)) continue;
    properties[key] = documented(tag, properties[key]);
    if (!tag.optional && !("default" in properties[key])) required.push(key);
  }
  if (!destructs && Object.keys(properties).length === 0) return null;
  const schema = { type: "object", properties };
  if (required.length) schema.required = required;
  schema.additionalProperties = open;
  return schema;
}

// What `{a, b = 2, ...rest}` tells: names, and of defaults their types.
function destructured(pattern) {
  if (pattern?.type !== "ObjectPattern") return [];
  return pattern.properties.map((property) => {
    if (property.type === "RestElement") return ["", {}, true];
    const name = String(property.key.name ?? property.key.value);
    return [name, property.value.type === "AssignmentPattern" ? ofDefault(property.value.right) : {}, false];
  });
}

function ofDefault(node) {
  const negative = node.type === "UnaryExpression" && node.operator === "-" && typeof node.argument.value === "number";
  const value = negative ? -node.argument.value : node.type === "Literal" ? node.value : undefined;
  if (value === null) return { default: null };
  if (["string", "number", "boolean"].includes(typeof value)) return { type: typeof value, default: value };
  if (node.type === "ArrayExpression") return { type: "array", ...(node.elements.length ? {} : { default: [] }) };
  if (node.type === "ObjectExpression") return { type: "object", ...(node.properties.length ? {} : { default: {} }) };
  return {};
}

// Each `@param`: name, type's text, whether it is optional, its default's text, its description.
function* tags(comment) {
  if (!comment) return;
  const text = lines(comment).join("\n");
  for (const part of text.split(/^\s*@/m).slice(1)) {
    const head = /^(?:param|arg|argument)\s+/.exec(part);
    if (!head) continue;
    const [type, rest] = braces(part.slice(head[0].length));
    const found = /^\s*(?:\[\s*([\w$.]+)\s*(?:=\s*([^\]]*))?\]|([\w$.]+))\s*(?:-\s+)?([\s\S]*)$/.exec(rest);
    if (!found) continue;
    const optional = found[1] !== undefined || /=$/.test(type);
    const name = found[1] ?? found[3];
    yield {
      name,
      type: type.replace(/=$/, ""),
      optional,
      default: found[2],
      text: found[4].split(/\s+/).filter(Boolean).join(" "),
    };
  }
}

// The type in leading braces, and what follows.
function braces(text) {
  if (!text.startsWith("{")) return ["*", text];
  let depth = 0;
  for (let index = 0; index < text.length; index++) {
    if (text[index] === "{") depth++;
    if (text[index] === "}" && --depth === 0) return [text.slice(1, index).trim(), text.slice(index + 1)];
  }
  return ["*", ""];
}

function documented(tag, destructuredSchema = {}) {
  const { default: given, ...rest } = destructuredSchema;
  const schema = { ...rest, ...ofType(tag.type) };
  if (tag.text) schema.description = tag.text;
  const value = given !== undefined ? given : literal(tag.default);
  if (value !== undefined) schema.default = value;
  return schema;
}

function literal(text) {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text.trim().replace(/^'(.*)'$/, '"$1"'));
  } catch {
    return text.trim() || undefined;
  }
}

function ofType(text) {
  text = text.trim();
  if (text.startsWith("(") && text.endsWith(")")) text = text.slice(1, -1).trim();
  const members = split(text);
  if (members.length > 1) return union(members);
  if (text.startsWith("?")) return union([text.slice(1), "null"]);
  if (text.startsWith("!")) return ofType(text.slice(1));
  if (/^(["']).*\1$/.test(text)) return { type: "string", enum: [text.slice(1, -1)] };
  if (/^-?\d+(\.\d+)?$/.test(text)) return { enum: [Number(text)] };
  const array = /^(.*)\[\]$/.exec(text) ?? /^Array\.?<(.*)>$/i.exec(text);
  if (array) return arrayOf(ofType(array[1]));
  const record = /^(?:Record|Object)\.?<\s*string\s*,(.*)>$/i.exec(text);
  if (record) return { type: "object", additionalProperties: ofType(record[1]) };
  return { ...(TYPES[text.toLowerCase()] ?? {}) };
}

function arrayOf(items) {
  return Object.keys(items).length ? { type: "array", items } : { type: "array" };
}

// The members of a union, where `|` stands outside brackets and quotes.
function split(text) {
  return (text.match(/(?:"[^"]*"|'[^']*'|<[^|]*(?:<[^>]*>)?[^>]*>|\([^)]*\)(?:\[\])*|[^|])+/g) ?? [text]).map((one) =>
    one.trim(),
  );
}

function union(texts) {
  const members = texts.map(ofType);
  if (members.some((member) => Object.keys(member).length === 0)) return {};
  if (members.every((member) => member.type === "string" && member.enum)) {
    return { type: "string", enum: members.flatMap((member) => member.enum) };
  }
  return { anyOf: members };
}

module.exports = { firstParagraph, inputSchema };
