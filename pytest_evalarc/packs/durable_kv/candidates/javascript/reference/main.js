"use strict";

// A durable key-value service: a JSON request per line in, a JSON reply per line out.
//
// It is started with the path of its snapshot, one JSON file with all entries, which it makes when
// there is none.

const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");
const { isDeepStrictEqual } = require("node:util");

/** What each operation needs beside a key. */
const FIELDS = new Map([
  ["get", []],
  ["put", ["value"]],
  ["delete", []],
  ["cas", ["expected", "value"]],
]);
const WRITES = ["put", "delete"];
const INVALID = { ok: false, error: "invalid_request" };

/**
 * Read JSON and keep every number as it is spelt: as doubles, 1 and 1.0 would be the same, and long
 * integers would lose digits. JSON.stringify writes such numbers back unchanged.
 */
function parse(text) {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === "number" ? JSON.rawJSON(source) : value,
  );
}

/** Return the entries of a snapshot; before the first one there are none. */
function load(file) {
  return new Map(fs.existsSync(file) ? parse(fs.readFileSync(file, "utf8")) : []);
}

/** Replace a snapshot, so that at every moment the disk has either the old one or the new one. */
function save(file, entries) {
  const draft = `${file}.new`;
  fs.writeFileSync(draft, JSON.stringify([...entries]), { flush: true });
  fs.renameSync(draft, file);
  syncFolder(path.dirname(file));
}

/** Make the names in a folder reach the disk: a rename alone may still be lost. */
function syncFolder(folder) {
  const descriptor = fs.openSync(folder, "r");
  try {
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Values by key, in memory and on the disk. */
class Store {
  #file;
  #entries;

  constructor(file) {
    this.#file = file;
    this.#entries = load(file);
  }

  /** Return the value of a key; undefined, which no JSON value is, when it has none. */
  get(key) {
    return this.#entries.get(key);
  }

  /** Apply puts and deletes in order, all or none; they are on the disk when it returns. */
  write(operations) {
    const entries = new Map(this.#entries);
    for (const { op, key, value } of operations) {
      if (op === "put") entries.set(key, value);
      else entries.delete(key);
    }
    save(this.#file, entries);
    this.#entries = entries;
  }

  /** Set the value of a key if it has the expected one; return whether it did. */
  swap(key, expected, value) {
    const current = this.get(key);
    const swapped = isDeepStrictEqual(current, expected);
    if (swapped) this.write([{ op: "put", key, value }]);
    return swapped;
  }
}

/** Whether an operation may stand in a batch. */
function isWrite(operation) {
  return WRITES.includes(operation?.op) && isValid(operation);
}

/** Whether a request keeps the protocol; fields that nobody asked for do no harm. */
function isValid(request) {
  const { op, key, operations } = request ?? {};
  if (op === "batch") return Array.isArray(operations) && operations.every(isWrite);
  if (!FIELDS.has(op)) return false;
  return typeof key === "string" && FIELDS.get(op).every((field) => Object.hasOwn(request, field));
}

/** Apply a request and return its reply; an invalid one changes nothing. */
function answer(store, request) {
  if (!isValid(request)) return INVALID;
  switch (request.op) {
    case "get": {
      const value = store.get(request.key);
      return value === undefined ? { ok: true, found: false } : { ok: true, found: true, value };
    }
    case "cas":
      return { ok: true, swapped: store.swap(request.key, request.expected, request.value) };
    case "batch":
      store.write(request.operations);
      return { ok: true };
    default:
      store.write([request]);
      return { ok: true };
  }
}

/** Return the request of a line; what is no JSON is no valid request either. */
function parsed(line) {
  try {
    return parse(line);
  } catch {
    return null;
  }
}

/** Answer requests until the input ends; what is acknowledged is on the disk. */
async function serve(store) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const reply = answer(store, parsed(line));
    process.stdout.write(`${JSON.stringify(reply)}\n`);
  }
}

serve(new Store(process.argv[2]));
