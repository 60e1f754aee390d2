"use strict";
// Gets ready for a call that is not there yet: loads what its code will, then takes the call's environment.

const channel = require("./channel.cjs");
const loading = require("./loading.cjs");

// The call's request. What it returns to is as if the process had been started for the call.
function untilCalled(plan) {
  let fits = true;
  try {
    for (const [name] of plan.preload) require(`node:${name}`);
    loading.isCommonJs("");
    require("./results.cjs");
    require("./omniforge.cjs");
  } catch {
    fits = false;
  }
  channel.send(fits ? '{"type":"ready"}' : '{"type":"unfit"}');
  const variables = channel.receive();
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const variable of variables) {
    const split = variable.indexOf("=");
    process.env[variable.slice(0, split)] = variable.slice(split + 1);
  }
  delete require.cache[__filename];
  return channel.receive();
}

module.exports = { untilCalled };
