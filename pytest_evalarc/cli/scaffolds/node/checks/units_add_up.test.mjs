// Hours, minutes and seconds are added up, whichever of them are there.

import assert from "node:assert/strict";
import test from "node:test";

// Each call runs in a process of its own, so the code under test shares nothing with this.
test("units add up", () => {
  for (const [text, seconds] of [["1h30m", 5400], ["2h", 7200], ["45s", 45], ["1h1m1s", 3661]]) {
    assert.equal(submission.call("src/durations.mjs:seconds", [text]), seconds, text);
  }
});
