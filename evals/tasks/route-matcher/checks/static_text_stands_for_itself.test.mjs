// Static text is compared as it is, and nothing around a path makes a difference.

import assert from "node:assert/strict";
import test from "node:test";

test("static text stands for itself", () => {
  const patterns = ["/", "/logo.png", "/a+(b)/c", "/About"];
  const found = submission.call("src/router.mjs:matchAll", [
    patterns,
    ["/", "/?a=/b", "/logo.png", "/logo-png", "/a+(b)/c/", "/About#team/1", "/about", "/logo.png//"],
  ]);

  assert.deepEqual(
    found.map((row) => row && row.pattern),
    ["/", "/", "/logo.png", null, "/a+(b)/c", "/About", null, null],
  );
});
