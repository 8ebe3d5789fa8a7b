import assert from "node:assert/strict";
import test from "node:test";

import { InvalidPattern, match, matchAll } from "../src/router.mjs";

test("a static route", () => {
  assert.deepEqual(match(["/", "/about"], "/about"), { pattern: "/about", params: {} });
});

test("a parameter is one segment", () => {
  const found = { pattern: "/users/:id", params: { id: "42" } };

  assert.deepEqual(match(["/users/:id"], "/users/42"), found);
  assert.equal(match(["/users/:id"], "/users/42/posts"), null);
});

test("a query is no part of the path", () => {
  const params = { id: "42" };

  assert.deepEqual(match(["/users/:id"], "/users/42?tab=posts"), { pattern: "/users/:id", params });
});

test("several URLs", () => {
  assert.deepEqual(matchAll(["/a"], ["/b", "/a"]), [null, { pattern: "/a", params: {} }]);
});

test("a pattern begins with a slash", () => {
  assert.throws(() => match(["about"], "/about"), InvalidPattern);
});
