// What a submission in the check's own process must find closed. Intrinsics are frozen by an option
// of Node; the rest of what a verdict rests on is closed here, before the submission is loaded.

import assert from "node:assert";
import hooks from "node:async_hooks";
import EventEmitter from "node:events";
import inspector from "node:inspector";
import module from "node:module";
import stream from "node:stream";
import test from "node:test";
import v8 from "node:v8";
import workers from "node:worker_threads";

/** Functions that hand out the test that is running, look into this process, or start a thread in
 * which none of this holds. */
const DENIED = [
  [hooks, ["createHook", "executionAsyncResource"]],
  [inspector, ["open"]],
  [inspector.Session.prototype, ["connect", "connectToMainThread"]],
  [module, ["register", "registerHooks"]],
  [v8, ["getHeapSnapshot", "queryObjects", "writeHeapSnapshot"]],
  [v8, ["setFlagsFromString", "setHeapSnapshotNearHeapLimit"]],
  [workers, ["Worker"]],
];

/** What the test runner and its streams inherit from. */
const INHERITED = [
  EventEmitter.prototype,
  hooks.AsyncResource.prototype,
  stream.Stream.prototype,
  ...["Duplex", "PassThrough", "Readable", "Transform", "Writable"].map(
    (name) => stream[name].prototype,
  ),
];

/** Close it all; `events` is the stream of the test runner that has started. */
export function seal(events) {
  for (const [owner, names] of DENIED) {
    for (const name of names) {
      if (name in owner) Object.defineProperty(owner, name, { value: denied });
    }
  }
  module.syncBuiltinESMExports();
  for (const owner of [assert, assert.strict, test]) freeze(owner);
  for (const owner of [Object.getPrototypeOf(events), ...INHERITED]) {
    for (const name of Reflect.ownKeys(owner)) fix(owner, name);
  }
  // Frozen intrinsics can still be hidden behind another global of the same name.
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    const { value, configurable } = Object.getOwnPropertyDescriptor(globalThis, name);
    const isFrozen = Object(value) === value && Object.isFrozen(value);
    if (isFrozen && configurable) {
      Object.defineProperty(globalThis, name, { writable: false, configurable: false });
    }
  }
}

function denied() {
  throw new Error("not available in the process of a check");
}

function freeze(owner) {
  for (const name of Object.getOwnPropertyNames(owner)) {
    const { value } = Object.getOwnPropertyDescriptor(owner, name);
    if (typeof value === "function") Object.freeze(value);
  }
  Object.freeze(owner);
}

/** Fix a method for good; what inherits it can still be given another of its own by assignment. */
function fix(owner, name) {
  const { value, configurable } = Object.getOwnPropertyDescriptor(owner, name);
  if (typeof value !== "function" || !configurable) return;
  Object.defineProperty(owner, name, {
    configurable: false,
    get: () => value,
    set(other) {
      if (this === owner) denied();
      const own = { value: other, configurable: true, enumerable: true, writable: true };
      Object.defineProperty(this, name, own);
    },
  });
}
