// Names that every object has already are parameters like any other.

import assert from "node:assert/strict";
import test from "node:test";

test("any name is a parameter", () => {
  const found = submission.call("src/router.mjs:match", [
    ["/:constructor/:__proto__/:toString"],
    "/a/b/c",
  ]);

  // In a literal, `__proto__` would mean something else.
  const params = JSON.parse('{ "constructor": "a", "__proto__": "b", "toString": "c" }');
  assert.deepEqual(Object.entries(found.params), Object.entries(params));
});
