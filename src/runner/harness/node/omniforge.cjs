"use strict";
// What a tool gets from OmniForge: `require("omniforge")`, or `import { ToolError, ctx } from "omniforge"`.

const channel = require("./channel.cjs");
const content = require("./content.cjs");

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const ALIASES = { warn: "warning", fatal: "critical", err: "error", trace: "debug" };

// Ends the call with an error that shows exactly `text`, and `data` to programs.
class ToolError extends Error {
  constructor(text = "", data = null) {
    super(text);
    this.name = "ToolError";
    this.text = String(text);
    this.data = data;
  }
}

// Ends the call with a JSON-RPC error instead of a result.
class ProtocolError extends Error {
  constructor(code, text) {
    super(text);
    if (!Number.isInteger(code) || code !== (code | 0)) {
      throw new TypeError(`the code of a ProtocolError must be an integer of 32 bits, not ${String(code)}`);
    }
    this.name = "ProtocolError";
    this.code = code;
    this.text = String(text);
  }
}

// The client can't do what was asked of it, such as elicitation. Uncaught, it tells the client what is missing.
class MissingCapability extends ProtocolError {
  constructor(text) {
    super(-32021, text);
    this.name = "MissingCapability";
  }
}

// Facts about the call, and live messages to its caller.
class Context {
  get tool() {
    return fact("tool");
  }
  get version() {
    return fact("version");
  }
  get run_id() {
    return fact("run_id");
  }
  get runId() {
    return fact("run_id");
  }
  get uri() {
    return fact("uri");
  }
  get request_id() {
    return fact("request_id");
  }
  get requestId() {
    return fact("request_id");
  }
  get meta() {
    return fact("meta") ?? {};
  }
  get caller() {
    return fact("caller");
  }
  get client_capabilities() {
    return fact("client_capabilities") ?? {};
  }
  get clientCapabilities() {
    return fact("client_capabilities") ?? {};
  }

  // Sends a log message; `level` is one of MCP's eight.
  log = (level, data, logger) => {
    const word = String(level).toLowerCase();
    const known = ALIASES[word] ?? word;
    if (!LEVELS.includes(known)) throw new RangeError(`the log level must be one of ${LEVELS.join(", ")}, not ${word}`);
    const message = { type: "log", level: known, data: require("./results.cjs").readable(data) };
    if (logger != null) message.logger = String(logger);
    send(message, "data");
  };
  debug = (data, logger) => this.log("debug", data, logger);
  info = (data, logger) => this.log("info", data, logger);
  warning = (data, logger) => this.log("warning", data, logger);
  warn = (data, logger) => this.log("warning", data, logger);
  error = (data, logger) => this.log("error", data, logger);

  // Tells how far the call is.
  progress = (done, total, message) => {
    const frame = { type: "progress", progress: finite("progress", done) };
    if (total != null) frame.total = finite("total", total);
    if (message != null) frame.message = String(message).toWellFormed();
    send(frame, "message");
  };
  report_progress = (done, total, message) => this.progress(done, total, message);
  reportProgress = (done, total, message) => this.progress(done, total, message);

  // Ask the person or the model behind the client, or for its roots; promises of the answers.
  elicit = (message, schema, options) => questions().askOne(this.elicitation(message, schema, options), options?.key);
  sample = (messages, options) => questions().askOne(this.sampling(messages, options), options?.key);
  roots = (options) => questions().askOne(this.rootsRequest(), options?.key);
  ask = (requests) => questions().ask(requests);

  // The requests that these send, for `ask`.
  elicitation = (message, schema, options) => questions().elicitation(message, schema, options);
  sampling = (messages, options) => questions().sampling(messages, options);
  roots_request = () => questions().roots();
  rootsRequest = () => questions().roots();

  // Calls another saved tool; a promise of its structured value, or its text.
  call = async (tool, args = {}) => {
    const answer = await channel.request("call", { tool: String(tool), arguments: args });
    return answer.value ?? answer.text;
  };

  // What the tool keeps for its caller from one call to the next; promises.
  state = {
    get: async (key, fallback, scope = "caller") => {
      const answer = await channel.request("state.get", { key, scope });
      return answer.found ? answer.value : fallback;
    },
    set: async (key, value, scope = "caller") => void (await channel.request("state.set", { key, value, scope })),
    delete: async (key, scope = "caller") => (await channel.request("state.delete", { key, scope })).found,
  };

  // From here on the call is a task, or a handle for clients without tasks: nobody has to wait for it.
  start_task = () => channel.request("start_task", {});
  startTask = () => channel.request("start_task", {});
  // Ends the response stream early where the client can come back for the rest.
  close_stream = () => channel.request("close_stream", {});
  closeStream = () => channel.request("close_stream", {});
  // Tells clients that a list has changed: "tools", "prompts" or "resources".
  notify = (kind) => channel.request("notify", { kind: String(kind) });
  // Tells clients that follow this resource that what it holds has changed.
  resource_updated = (uri) => channel.request("resource_updated", { uri: String(uri) });
  resourceUpdated = (uri) => channel.request("resource_updated", { uri: String(uri) });
}

function questions() {
  return require("./questions.cjs");
}

function fact(name) {
  return channel.state.request.context?.[name];
}

function finite(name, value) {
  const number = Number(value);
  if (!Number.isFinite(number)) throw new RangeError(`${name} must be a finite number, not ${String(value)}`);
  return number;
}

function send(frame, field) {
  let text = JSON.stringify(frame);
  if (Buffer.byteLength(text) > channel.limit()) {
    const whole = typeof frame[field] === "string" ? frame[field] : text;
    frame[field] = `${whole.slice(0, channel.limit() >> 3).toWellFormed()}… [truncated]`;
    text = JSON.stringify(frame);
  }
  try {
    channel.send(text);
  } catch {
    // The tool closed the descriptor, or the server is gone: nobody to tell.
  }
}

exports.ToolError = ToolError;
exports.ProtocolError = ProtocolError;
exports.MissingCapability = MissingCapability;
exports.Context = Context;
exports.ctx = new Context();
exports.Result = content.Result;
exports.Text = content.Text;
exports.Image = content.Image;
exports.Audio = content.Audio;
exports.ResourceLink = content.ResourceLink;
exports.EmbeddedResource = content.EmbeddedResource;
