// A parameter takes one segment that is not empty, whatever is in it.

import assert from "node:assert/strict";
import test from "node:test";

test("a parameter is one segment", () => {
  const pattern = "/users/:id/posts/:post_2";
  const found = submission.call("src/router.mjs:matchAll", [
    [pattern],
    ["/users/7/posts/a.b-c?x=1", "/users//posts/1", "/users/7/posts/", "/users/7/posts/1/2"],
  ]);

  const params = { id: "7", post_2: "a.b-c" };
  assert.deepEqual(found, [{ pattern, params }, null, null, null]);
});
