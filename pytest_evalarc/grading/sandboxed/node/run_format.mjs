// Check with the task's prettier that sources are formatted; run as a script.
//
// Prettier is the task's and what it reads is not: a file that it cannot read, or that it dies of,
// is not formatted. So it first has to format nothing by the very same settings, and whatever fails
// there is no file's fault.

import { spawnSync } from "node:child_process";

import { open, stepRecords } from "./channel.mjs";

const BATCH = 200;
/** Files that could be the submission's and say what is formatted, or how. */
const FIXED = ["--no-editorconfig", "--ignore-path", "/dev/null"];

function prettier({ project, program, settings }, options, input = "") {
  const argv = [program, ...settings, ...FIXED, ...options];
  return spawnSync(process.execPath, argv, { cwd: project, encoding: "utf8", input });
}

/** Return what is not formatted, or an empty string. */
function problem(request) {
  const complaints = [];
  for (let at = 0; at < request.sources.length; at += BATCH) {
    const batch = request.sources.slice(at, at + BATCH);
    const done = prettier(request, ["--check", "--", ...batch]);
    const said = (done.stdout + done.stderr).trim();
    if (done.status !== 0) complaints.push(said || `prettier ended with ${done.status}`);
  }
  return complaints.join("\n");
}

const { request, send, finish } = open();
const nothing = prettier(request, ["--stdin-filepath", "nothing.mjs"]);
process.stderr.write(nothing.stderr ?? "");
if (nothing.status !== 0) process.exit(1);
send({ kind: "ready" });
finish(...stepRecords("fmt_check", problem(request)));
