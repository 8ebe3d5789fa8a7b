// A wildcard takes all segments that are left, as a list, and there may be none.

import assert from "node:assert/strict";
import test from "node:test";

test("a wildcard is the rest", () => {
  const pattern = "/docs/:version/*page";
  const found = submission.call("src/router.mjs:matchAll", [
    [pattern],
    ["/docs/2", "/docs/2/", "/docs/2/a", "/docs/2/a/b.html", "/docs"],
  ]);

  assert.deepEqual(
    found.map((row) => row && row.params.page),
    [[], [], ["a"], ["a", "b.html"], null],
  );
});
