// Run one hidden check and report it over the record channel; run as a script.
//
// The check's source arrives with the request and never lies in a mounted folder. It is written to
// a private temporary folder, in a mirror of the project made of links, so that `../src/a.mjs` and
// the project's packages mean what they would in `checks/`. A check that calls the submission as a
// process has no links, so it cannot import it as well. The first thing that any check imports is
// `gone.mjs`, which takes the file away again: all modules are read before any of them runs.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Transform } from "node:stream";
import { before } from "node:test";
import { pathToFileURL } from "node:url";

import { open, short } from "./channel.mjs";
import { makeReporterBy } from "./reporter.mjs";
import { seal } from "./seal.mjs";
import { Submission } from "./submission.mjs";

const CALLS = /\bsubmission\s*\.\s*call\s*\(/;

const { request, send, finish } = open();
const submission = new Submission(request.project);
const collected = [];
const outcomes = [];
let isLoaded = false;

/** Remember what the test runner says of the file's own tests; subtests count in their parent. */
function follow({ type, data }) {
  if (data?.nesting !== 0) return;
  if (type === "test:enqueue") collected.push(data.name);
  if (type === "test:pass" || type === "test:fail") {
    outcomes.push(outcome(type, data));
    finishWhenDone();
  }
}

function outcome(type, data) {
  const error = data.details?.error;
  const cause = error?.cause ?? error;
  const ended = type === "test:pass" ? "passed" : "failed";
  const excused = data.skip !== undefined ? "skipped" : data.todo !== undefined ? "xfail" : null;
  return {
    kind: "outcome",
    id: data.name,
    outcome: excused ?? ended,
    when: "call",
    answered: excused === null && (Submission.answered(submission) ?? !isImportError(cause)),
    text: type === "test:pass" ? "" : short(cause?.message ?? cause ?? ""),
  };
}

function isImportError(error) {
  return error instanceof SyntaxError || error?.code === "ERR_MODULE_NOT_FOUND";
}

function finishWhenDone() {
  // A timer or a server that is left open is no reason to wait for the deadline.
  if (isLoaded && outcomes.length > 0 && outcomes.length === collected.length) conclude();
}

function conclude() {
  // A test that ran although its file never came to its end was not the check's.
  const problem = "the check never came to its end";
  const found = isLoaded ? outcomes : [notCollected(problem)];
  const ids = isLoaded ? [{ kind: "collected", ids: collected }] : [];
  finish(...ids, ...found, end(0));
}

function end(exitstatus) {
  return { kind: "end", ran: collected.length, exitstatus };
}

function notCollected(problem) {
  const text = short(problem);
  return { kind: "outcome", id: "", outcome: "failed", when: "collect", answered: false, text };
}

/** Start the test runner, as the first thing that it is told does, and return its events. */
function startRunner() {
  return new Promise((resolve) => {
    makeReporterBy(() => {
      const reporter = new Transform({
        writableObjectMode: true,
        transform: (event, _, done) => done(follow(event)),
        // Nothing is left that could run.
        flush: conclude,
      });
      return reporter.once("pipe", resolve);
    });
    before(() => {});
  });
}

/** Write the check where it can be imported, and return its path. */
function placed({ check, source, project, fixtures }) {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "check-"));
  const mirror = path.join(root, "project");
  fs.mkdirSync(path.join(mirror, "checks"), { recursive: true });
  fs.symlinkSync(fixtures, path.join(root, "fixtures"));
  const linked = CALLS.test(source) ? [] : fs.readdirSync(project);
  for (const name of linked.filter((name) => name !== "checks")) {
    fs.symlinkSync(path.join(project, name), path.join(mirror, name));
  }
  const file = path.join(mirror, "checks", `${check}.test.mjs`);
  const gone = `${import.meta.resolve("./gone.mjs")}?file=${encodeURIComponent(file)}`;
  // In the first line, so that the others keep their numbers.
  fs.writeFileSync(file, `import ${JSON.stringify(gone)}; ${source}`);
  return file;
}

const file = placed(request);
delete request.source;
const events = await startRunner();
Object.defineProperty(globalThis, "submission", { value: Object.freeze(submission) });
seal(events);
send({ kind: "ready" });
try {
  await import(pathToFileURL(file));
  isLoaded = true;
  finishWhenDone();
} catch (error) {
  finish(notCollected(`${error?.name ?? "Error"}: ${error?.message ?? error}`), end(1));
}
