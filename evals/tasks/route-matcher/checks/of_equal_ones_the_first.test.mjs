// Of patterns that are equally good, the first in the list is taken.

import assert from "node:assert/strict";
import test from "node:test";

test("of equal ones the first", () => {
  const found = submission.call("src/router.mjs:matchAll", [
    ["/:first/a", "/:second/a", "/b/:third", "/b/:fourth"],
    ["/x/a", "/b/y"],
  ]);

  assert.deepEqual(found, [
    { pattern: "/:first/a", params: { first: "x" } },
    { pattern: "/b/:third", params: { third: "y" } },
  ]);
});
