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

// Facts about the call, and live messages to its caller.
class Context {
  get tool() { return fact("tool"); }
  get version() { return fact("version"); }
  get run_id() { return fact("run_id"); }
  get runId() { return fact("run_id"); }
  get request_id() { return fact("request_id"); }
  get requestId() { return fact("request_id"); }
  get meta() { return fact("meta") ?? {}; }
  get caller() { return fact("caller"); }
  get client_capabilities() { return fact("client_capabilities") ?? {}; }
  get clientCapabilities() { return fact("client_capabilities") ?? {}; }

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
  if (text.length > channel.limit()) {
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
exports.Context = Context;
exports.ctx = new Context();
exports.Text = content.Text;
exports.Image = content.Image;
exports.Audio = content.Audio;
exports.ResourceLink = content.ResourceLink;
exports.EmbeddedResource = content.EmbeddedResource;
