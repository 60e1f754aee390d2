"use strict";
// Starts the harness.
require("./driver.cjs").serve();
