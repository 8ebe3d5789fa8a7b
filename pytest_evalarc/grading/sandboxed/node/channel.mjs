// The record channel: what a grading process reports, on descriptor 3, which no child inherits.
//
// The host connects standard output to descriptor 3 and standard error to 1 and 2, so whatever the
// submission prints is a diagnostic and never a record. Each record is one line: a signature, a space,
// and JSON. The signature is keyed with the nonce that arrived on standard input and covers the
// record's place in the sequence: whoever diverts the channel learns nothing to sign with, and can
// leave out no record.

import { createHmac, Hmac } from "node:crypto";
import fs from "node:fs";

const CHANNEL = 3;
const LONGEST = 2000;

// Bound here, so that replacing a function later changes nothing.
const { fstatSync, readSync, writeSync } = fs;
const { parse, stringify } = JSON;
const { apply } = Reflect;
const { digest, update } = Hmac.prototype;
const exit = process.reallyExit.bind(process);

let isOpen = false;

/** Take over the channel and the request; only the first caller gets them. */
export function open() {
  if (isOpen) throw new Error("the record channel is taken");
  isOpen = true;
  const { nonce, ...request } = readRequest();
  // Not a string and not from the shared pool: neither a look at the heap nor one at the memory
  // around some other buffer finds it.
  const key = new Uint8Array(nonce.length);
  for (let at = 0; at < key.length; at += 1) key[at] = nonce.charCodeAt(at);
  const pipe = identity();

  let sent = 0;

  function signed(record) {
    const text = stringify(record);
    const hmac = createHmac("sha256", key);
    apply(update, hmac, [`${sent} ${text}`]);
    sent += 1;
    return `${apply(digest, hmac, ["hex"])} ${text}\n`;
  }

  /** Send records in one write, so that nothing can happen between them. */
  function send(...records) {
    // Another file in the channel's place would keep the host from seeing them.
    if (identity() !== pipe) exit(1);
    let lines = "";
    for (let at = 0; at < records.length; at += 1) lines += signed(records[at]);
    writeSync(CHANNEL, lines);
  }

  /** Send the last records and end at once, so that no handler of the submission runs. */
  function finish(...records) {
    send(...records);
    exit(0);
  }

  process.on("SIGUSR1", ignore);
  return { request, send, finish };
}

// Any process of the sandbox could otherwise ask this one to open its debugger.
function ignore() {}

function identity() {
  const { dev, ino } = fstatSync(CHANNEL, { bigint: true });
  return `${dev}:${ino}`;
}

/** Read standard input, and leave no copy of it in memory that is handed out again. */
function readRequest() {
  const chunks = [];
  const chunk = new Uint8Array(1 << 16);
  for (let size = readSync(0, chunk); size > 0; size = readSync(0, chunk)) {
    chunks.push(chunk.slice(0, size));
  }
  const whole = new Uint8Array(chunks.reduce((size, part) => size + part.length, 0));
  chunks.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  const request = parse(new TextDecoder().decode(whole));
  for (const part of [chunk, whole, ...chunks]) part.fill(0);
  return request;
}

/** Return a text that fits a record, its end kept because the reason stands there. */
export function short(text) {
  const words = String(text);
  return words.length <= LONGEST ? words : `…${words.slice(-LONGEST)}`;
}

/** Return what a step reports: one outcome under its own name. */
export function stepRecords(name, problem) {
  const outcome = problem ? "failed" : "passed";
  return [
    { kind: "outcome", id: name, outcome, when: "call", answered: true, text: short(problem) },
    { kind: "end", ran: 1, exitstatus: 0 },
  ];
}
