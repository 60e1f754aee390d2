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
  for (let filled = 0; filled < size; ) {
    const count = again(() => fs.readSync(DESCRIPTOR, buffer, filled, size - filled, null));
    if (count === 0) process.reallyExit(0);
    filled += count;
  }
  return buffer;
}

// Waits for the server's one frame.
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
  for (let sent = 0; sent < frame.length; ) {
    sent += again(() => fs.writeSync(DESCRIPTOR, frame, sent, frame.length - sent));
  }
}

function limit() {
  return state.request.result_limit || 4 << 20;
}

module.exports = { limit, receive, send, state };
