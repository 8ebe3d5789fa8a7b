// Escapes are decoded after the path was split, and one time.

import assert from "node:assert/strict";
import test from "node:test";

test("segments are decoded once", () => {
  const patterns = ["/files/:name", "/files/*names", "/caf\u00e9/:any"];
  const found = submission.call("src/router.mjs:matchAll", [
    patterns,
    [
      "/files/a%2Fb",
      "/files/a%2fb/c%20d",
      "/files/100%2525",
      "/files/a+b%3Fc%23d?e",
      "/caf%C3%A9/%E2%9C%93",
    ],
  ]);

  assert.deepEqual(
    found.map((row) => row && row.params),
    [
      { name: "a/b" },
      { names: ["a/b", "c d"] },
      { name: "100%25" },
      { name: "a+b?c#d" },
      { any: "\u2713" },
    ],
  );
});
