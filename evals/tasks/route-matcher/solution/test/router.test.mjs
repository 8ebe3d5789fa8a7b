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

test("static text is better than a parameter, wherever it stands in the list", () => {
  const patterns = ["/users/*rest", "/users/:id", "/users/new"];

  assert.equal(match(patterns, "/users/new").pattern, "/users/new");
  assert.equal(match(patterns, "/users/7").pattern, "/users/:id");
  assert.equal(match(patterns, "/users").pattern, "/users/*rest");
});

test("segments are decoded one by one", () => {
  assert.deepEqual(match(["/files/:name"], "/files/a%2Fb").params, { name: "a/b" });
  assert.equal(match(["/:any"], "/%zz"), null);
});

test("a wildcard is a list, and may be empty", () => {
  assert.deepEqual(match(["/docs/*page"], "/docs").params, { page: [] });
  assert.deepEqual(match(["/docs/*page"], "/docs/a/b").params, { page: ["a", "b"] });
});

test("a mistake in a pattern is told", () => {
  for (const pattern of ["/:a/:a", "/*rest/a", "/:", "/a//b"]) {
    assert.throws(() => match([pattern], "/"), InvalidPattern, pattern);
  }
});
