// A support agent, to be written: it reads what is asked, and finishes without doing any of it.
"use strict";

const readline = require("node:readline");

readline.createInterface({ input: process.stdin }).once("line", (line) => {
  JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ finish: true })}\n`);
});
