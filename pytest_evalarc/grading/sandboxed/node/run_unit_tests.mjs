// Run the submission's own tests, in a copy they may write to; run as a script.
//
// Each file runs in a process of its own, as under `node --test`, so none of them can write a
// record. What they report can still be forged by them; the hidden checks are what cannot.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { run } from "node:test";

import { open, short, stepRecords } from "./channel.mjs";

/** Return the first failure of the tests as a text, or an empty string. */
async function problem(files) {
  let text = "";
  for await (const { type, data } of run({ files })) {
    if (type !== "test:fail" || data.todo !== undefined || text !== "") continue;
    const cause = data.details.error.cause ?? data.details.error;
    text = `${data.name}: ${cause.message ?? cause}`;
  }
  return text;
}

const { request, send, finish } = open();
const root = fs.mkdtempSync(path.join(os.tmpdir(), "tests-"));
const project = path.join(root, "project");
fs.cpSync(request.project, project, { recursive: true });
fs.symlinkSync(request.fixtures, path.join(root, "fixtures"));
process.chdir(project);
send({ kind: "ready" });
finish(...stepRecords("unit_tests", await problem(request.tests.map((test) => path.join(project, test)))));
