// Parse the sources of a submission, and run none of them; run as a script.
//
// Most files are parsed here, since a process for each would cost more than all of them. Where the
// two could differ, `node --check` decides.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

import { open, stepRecords } from "./channel.mjs";

const WRAPPED = ["exports", "require", "module", "__filename", "__dirname"];

/** Return why the sources do not build, or an empty string. */
function problem({ project, sources }) {
  for (const source of sources) {
    const file = path.join(project, source);
    if (parses(file, project)) continue;
    const done = spawnSync(process.execPath, ["--check", file], { encoding: "utf8" });
    if (done.status !== 0) return done.stderr.replaceAll(file, source).trim();
  }
  return "";
}

/** Whether a file is surely well formed. */
function parses(file, project) {
  try {
    const text = fs.readFileSync(file, "utf8").replace(/^\uFEFF/, "");
    const kind = kindOf(file, project);
    if (kind === "module") new vm.SourceTextModule(text);
    if (kind === "commonjs") vm.compileFunction(text, WRAPPED);
    return kind !== undefined;
  } catch {
    return false;
  }
}

/** Return `module` or `commonjs`; undefined when only Node's own guess would tell. */
function kindOf(file, project) {
  const byEnding = { ".mjs": "module", ".cjs": "commonjs" }[path.extname(file)];
  if (byEnding !== undefined) return byEnding;
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    const packaged = path.join(folder, "package.json");
    if (fs.existsSync(packaged)) return JSON.parse(fs.readFileSync(packaged, "utf8")).type;
    if (folder === project) return undefined;
  }
}

const { request, send, finish } = open();
send({ kind: "ready" });
finish(...stepRecords("build", problem(request)));
