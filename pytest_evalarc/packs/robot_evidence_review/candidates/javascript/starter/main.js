"use strict";

// Reviews of recorded flights, to be written: requests are read, and none is answered yet.

const readline = require("node:readline");

/** Return the report on the recording of a request. */
function review(request) {
  throw new Error("the review is not written yet");
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  console.log(JSON.stringify({ ok: true, report: review(JSON.parse(line)) }));
});
