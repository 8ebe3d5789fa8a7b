// Patterns are compared from left to right, static before parameter before wildcard.

import assert from "node:assert/strict";
import test from "node:test";

test("the best pattern wins", () => {
  const patterns = [
    "/*all",
    "/:section/new",
    "/:section/:id",
    "/users/*rest",
    "/users/:id",
    "/users/:id/*rest",
    "/users/:id/edit",
    "/users/me/:tab",
    "/:section/me/edit",
    "/teams/:id/:tab",
  ];
  const expected = {
    "/users/new": "/users/:id",
    "/posts/new": "/:section/new",
    "/posts/7": "/:section/:id",
    "/users": "/users/*rest",
    "/users/7/edit": "/users/:id/edit",
    "/users/7/view": "/users/:id/*rest",
    "/users/me/edit": "/users/me/:tab",
    "/posts/me/edit": "/:section/me/edit",
    "/teams/me/edit": "/teams/:id/:tab",
    "/x/y/z": "/*all",
  };
  const urls = Object.keys(expected);

  for (const order of [patterns, patterns.toReversed()]) {
    const found = submission.call("src/router.mjs:matchAll", [order, urls]);
    const best = Object.fromEntries(found.map((row, at) => [urls[at], row && row.pattern]));
    assert.deepEqual(best, expected);
  }
});
