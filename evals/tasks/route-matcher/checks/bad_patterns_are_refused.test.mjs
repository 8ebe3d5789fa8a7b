// Every pattern of the list is checked, also behind one that fits.

import assert from "node:assert/strict";
import test from "node:test";

test("bad patterns are refused", () => {
  const calls = [
    ["about"],
    [""],
    ["/a/"],
    ["/a//b"],
    ["/:"],
    ["/*"],
    ["/:a-b"],
    ["/*rest/a"],
    ["/:a/b/:a"],
    ["/:a/*a"],
    ["/fits", "/:a/:a"],
  ];

  for (const patterns of calls) {
    assert.throws(
      () => submission.call("src/router.mjs:match", [patterns, "/fits"]),
      (error) => error instanceof submission.Raised && error.type === "InvalidPattern",
      JSON.stringify(patterns),
    );
  }
});
