// Call one function of the submission in a process of its own; run as a script.
//
// Reads `{"project", "target", "args"}` from standard input. Writes one JSON line to descriptor 3:
// `{"value"}`, without it when there is none, or `{"raised": {"type", "message", "code"}, "stage"}`,
// where the stage is `import`, `call` or `encode`. Everything in this process belongs to the
// submission; the process that started it believes only that one line.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const ANSWERS = 3;
const exit = process.reallyExit.bind(process);

/** Return the line that says what the call gave, or what it threw and where. */
async function reply({ project, target, args }) {
  let stage = "import";
  try {
    const [file, name] = target.split(":");
    const exports = await import(pathToFileURL(path.join(project, file)));
    const names = name.split(".");
    const last = names.pop();
    const owner = names.reduce((found, part) => found[part], exports);
    if (typeof owner[last] !== "function") throw new TypeError(`${target} is not a function`);
    stage = "call";
    const value = await owner[last](...args);
    stage = "encode";
    return JSON.stringify({ value }, strict);
  } catch (error) {
    const type = error?.constructor?.name ?? typeof error;
    const message = String(error?.message ?? error);
    return JSON.stringify({ raised: { type, message, code: error?.code }, stage });
  }
}

/** Refuse what JSON would quietly turn into something else. */
function strict(key, value) {
  const isLost = typeof value === "function" || typeof value === "symbol";
  if (isLost || (typeof value === "number" && !Number.isFinite(value))) {
    throw new TypeError(`${String(value)} at "${key}" is no JSON value`);
  }
  return value;
}

const line = await reply(JSON.parse(fs.readFileSync(0, "utf8")));
fs.writeFileSync(ANSWERS, `${line}\n`);
exit(0);
