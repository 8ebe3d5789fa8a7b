// A URL that cannot be decoded fits no pattern, and is no error.

import assert from "node:assert/strict";
import test from "node:test";

test("bad escapes fit nothing", () => {
  const found = submission.call("src/router.mjs:matchAll", [
    ["/*all", "/:one", "/%zz"],
    ["/%zz", "/a/%E0%A4%A", "/100%", "/a?b=%zz"],
  ]);

  assert.deepEqual(
    found.map((row) => row && row.pattern),
    [null, null, null, "/:one"],
  );
});
