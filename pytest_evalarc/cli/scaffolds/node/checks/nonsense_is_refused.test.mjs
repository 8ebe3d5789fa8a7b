// A text that is no duration is refused, also when it begins like one.

import assert from "node:assert/strict";
import test from "node:test";

// A function that gives up on everything must not pass, so one good call comes first.
test("nonsense is refused", () => {
  assert.equal(submission.call("src/durations.mjs:seconds", ["5m"]), 300);

  for (const text of ["", "h", "90", "30m1h", "1h later", "-5m", "1.5h"]) {
    assert.throws(
      () => submission.call("src/durations.mjs:seconds", [text]),
      (error) => error instanceof submission.Raised && error.type === "RangeError",
      text,
    );
  }
});
