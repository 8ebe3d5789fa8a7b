"use strict";

// A durable key-value service, to be written: it answers, and does nothing yet.

const readline = require("node:readline");

readline.createInterface({ input: process.stdin }).on("line", () => {
  process.stdout.write(`${JSON.stringify({ ok: false, error: "not_implemented" })}\n`);
});
