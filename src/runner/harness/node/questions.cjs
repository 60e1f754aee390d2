"use strict";
// Questions to the client: what `ctx.elicit`, `ctx.sample`, `ctx.roots` and `ctx.ask` send, and what they give back.

const channel = require("./channel.cjs");

// The request of an elicitation: a form by its JSON schema, or a URL.
function elicitation(message, schema, options) {
  const params = { message: String(message) };
  if (options?.url != null) Object.assign(params, { mode: "url", url: String(options.url) });
  else Object.assign(params, { mode: "form", requestedSchema: schema ?? { type: "object", properties: {} } });
  return { method: "elicitation/create", params };
}

// The request of a sampling; `messages` is a text, one message or a list of them.
function sampling(messages, { maxTokens = 1024, key, ...options } = {}) {
  const list = Array.isArray(messages) ? messages : [messages];
  return { method: "sampling/createMessage", params: { messages: list.map(message), maxTokens, ...options } };
}

function message(given) {
  if (typeof given === "string") return { role: "user", content: { type: "text", text: given } };
  if (typeof given?.content === "string") return { ...given, content: { type: "text", text: given.content } };
  return given;
}

// The request for the client's roots.
function roots() {
  return { method: "roots/list", params: {} };
}

// Sends all of them at once; the answers by key, when the last one is there.
async function ask(requests) {
  if (requests == null || typeof requests !== "object" || Object.keys(requests).length === 0) {
    throw new TypeError("ctx.ask takes an object of requests by key, such as { name: ctx.elicitation(…) }");
  }
  const answers = await channel.request("ask", { requests });
  return Object.fromEntries(Object.entries(answers).map(([key, it]) => [key, answer(requests[key]?.method, it)]));
}

// Sends one request and gives its answer.
async function askOne(request, key) {
  const answers = await channel.request("ask", { requests: { [key ?? ""]: request } });
  return answer(request.method, Object.values(answers)[0]);
}

function answer(method, it) {
  if (method === "elicitation/create") return { ...it, accepted: it.action === "accept" };
  if (method === "roots/list") return it.roots ?? [];
  const blocks = Array.isArray(it.content) ? it.content : [it.content];
  const texts = blocks.filter((block) => block?.type === "text").map((block) => block.text);
  return { ...it, text: texts.join("\n") };
}

module.exports = { ask, askOne, elicitation, roots, sampling };
