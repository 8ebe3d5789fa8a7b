// A pattern that has ended is better than one with a wildcard for nothing.

import assert from "node:assert/strict";
import test from "node:test";

test("a pattern that ends is better", () => {
  const patterns = ["/docs/*page", "/docs", "/*all", "/"];

  for (const order of [patterns, patterns.toReversed()]) {
    const found = submission.call("src/router.mjs:matchAll", [order, ["/docs", "/", "/docs/a"]]);
    assert.deepEqual(
      found.map((row) => row.pattern),
      ["/docs", "/", "/docs/*page"],
    );
  }
});
