"use strict";
// Runs a tool: reads the request, runs the code in its style, sends back what came of it.

const channel = require("./channel.cjs");

let answered = false;

function serve() {
  let request = channel.receive();
  if (request.preload) request = require("./waiting.cjs").untilCalled(request);
  if (request.inspect) {
    answer(JSON.stringify(require("./inspector.cjs").inspect(request.code, request.language)));
    return;
  }
  process.argv = [process.argv[0], "/tool/main.js"];
  Error.stackTraceLimit = 50;
  process.on("uncaughtException", request.style === "script" ? endScript : fail);
  if (request.style === "script") runScript(request);
  else runFunction(request);
}

// Sends the last frame and ends the process at once, whatever timers and handles still keep it alive.
function answer(text) {
  if (answered) return;
  answered = true;
  try {
    channel.send(text);
  } catch {
    process.reallyExit(1);
  }
  process.reallyExit(0);
}

function fail(error) {
  if (process.listenerCount("uncaughtException") > 1) return; // The tool handles them itself.
  answer(require("./failure.cjs").frame(error));
}

async function runFunction(request) {
  process.on("beforeExit", () => {
    const message = "`main` never finished: its promise is pending, and nothing is left that could settle it";
    fail(Object.assign(new Error(message), { stack: "" }));
  });
  process.on("exit", (status) => {
    if (answered) return;
    if (status === 0) return answer('{"type":"return","kind":"nothing"}');
    const error = new Error(`the tool left with exit status ${status}`);
    answer(require("./failure.cjs").frame(Object.assign(error, { name: "ProcessExit", stack: "" })));
  });
  try {
    const main = exportedMain(await require("./loading.cjs").load(request.code));
    const result = await main(request.arguments, require("./omniforge.cjs").ctx);
    answer(require("./results.cjs").frame(result));
  } catch (error) {
    answer(require("./failure.cjs").frame(error));
  }
}

function exportedMain(exported) {
  const byDefault = exported == null ? undefined : exported.default;
  const candidates = [exported?.main, exported, byDefault?.main, byDefault, byDefault?.default];
  const main = candidates.find((candidate) => typeof candidate === "function");
  if (main) return main;
  throw Object.assign(new Error("the code exports no function `main`"), { stack: "" });
}

async function runScript(request) {
  let ended = false;
  process.on("beforeExit", () => {
    if (ended) return;
    process.stderr.write("Warning: unsettled top-level await\n");
    process.exit(13);
  });
  try {
    await require("./loading.cjs").load(request.code, true);
    ended = true;
  } catch (error) {
    endScript(error);
  }
}

// What Node does with an uncaught error, without the frames of the harness; the errors made for callers become frames.
function endScript(error) {
  if (process.listenerCount("uncaughtException") > 1) return;
  const failure = require("./failure.cjs");
  const frame = failure.askedFor(error);
  if (frame) return answer(frame);
  process.stderr.write(`Uncaught ${failure.describe(error)}\n`);
  process.exit(1);
}

module.exports = { serve };
