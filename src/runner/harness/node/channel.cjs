"use strict";
// The descriptor to the server: JSON values in frames, each after its length as four big-endian bytes.

const fs = require("fs");

const DESCRIPTOR = 3;

// The request, once it has arrived.
const state = { request: {} };

function wait() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
}

// Runs a system call again for as long as the descriptor isn't ready.
function again(call) {
  for (;;) {
    try {
      return call();
    } catch (error) {
      if (error.code !== "EAGAIN" && error.code !== "EINTR") throw error;
      if (error.code === "EAGAIN") wait();
    }
  }
}

function read(size) {
  const buffer = Buffer.allocUnsafe(size);
  for (let filled = 0; filled < size;) {
    const count = again(() => fs.readSync(DESCRIPTOR, buffer, filled, size - filled, null));
    if (count === 0) process.reallyExit(0);
    filled += count;
  }
  return buffer;
}

// Waits for the server's first frame.
function receive() {
  state.request = JSON.parse(read(read(4).readUInt32BE()).toString());
  return state.request;
}

// Writes one frame, given as JSON text. Throws where the tool closed the descriptor or the server is gone.
function send(text) {
  const body = Buffer.from(text);
  const frame = Buffer.allocUnsafe(4 + body.length);
  frame.writeUInt32BE(body.length);
  body.copy(frame, 4);
  for (let sent = 0; sent < frame.length;) {
    sent += again(() => fs.writeSync(DESCRIPTOR, frame, sent, frame.length - sent));
  }
}

// The requests that wait for their answers, and whether one frame is being read.
const waiting = new Map();
let count = 0;
let reading = false;

// Sends a request; a promise of its answer's value.
function request(method, params) {
  return new Promise((resolve, reject) => {
    const id = ++count;
    send(JSON.stringify({ type: "request", id, method, params }));
    waiting.set(id, { resolve, reject });
    listen();
  });
}

// Reads answers without blocking the event loop, for as long as somebody waits for one.
async function listen() {
  if (reading) return;
  reading = true;
  try {
    while (waiting.size > 0) {
      const answer = JSON.parse((await arriving((await arriving(4)).readUInt32BE())).toString());
      const { resolve, reject } = waiting.get(answer.id) ?? {};
      waiting.delete(answer.id);
      if (answer.error) reject?.(refusal(answer.error));
      else resolve?.(answer.result);
    }
  } catch (error) {
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  } finally {
    reading = false;
  }
}

function refusal({ kind, message }) {
  const { MissingCapability, ToolError } = require("./omniforge.cjs");
  return kind === "missing_capability" ? new MissingCapability(message) : new ToolError(message);
}

async function arriving(size) {
  const buffer = Buffer.allocUnsafe(size);
  for (let filled = 0; filled < size;) {
    const count = await new Promise((resolve, reject) => {
      fs.read(DESCRIPTOR, buffer, filled, size - filled, null, (error, bytes) => {
        if (error && error.code !== "EAGAIN" && error.code !== "EINTR") reject(error);
        else if (error) setTimeout(resolve, 5, 0);
        else if (bytes === 0) reject(new Error("the server is gone"));
        else resolve(bytes);
      });
    });
    filled += count;
  }
  return buffer;
}

function limit() {
  return state.request.result_limit || 4 << 20;
}

module.exports = { limit, receive, request, send, state };
