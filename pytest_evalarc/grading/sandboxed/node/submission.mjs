// The global `submission`: a child process that shares nothing with the check.

import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ANSWER_BYTES = 8 * 1024 * 1024;
const COMPLAINT_BYTES = 300;
const STAGES = ["import", "call", "encode"];
const PROGRAM = fileURLToPath(new URL("call.mjs", import.meta.url));
const NODE = process.execPath;

/** A function of the submission threw: `type` is the class, `message` and `code` are as given. */
class Raised extends Error {
  constructor({ type, message, code }) {
    super(message);
    this.name = "Raised";
    this.type = type;
    this.code = code;
  }

  toString() {
    return `${this.type}: ${this.message}`;
  }
}

/** The submission's process ended, or was ended, without an answer. */
class NoAnswer extends Error {
  constructor(message) {
    super(message);
    this.name = "NoAnswer";
  }
}

/** Stand for the submission in a project folder, each call in a fresh process. */
export class Submission {
  Raised = Raised;
  NoAnswer = NoAnswer;
  /** An empty writable folder, shared by all calls of this check. */
  scratch = fs.mkdtempSync(path.join(os.tmpdir(), "scratch-"));
  #project;
  #calls = 0;
  #answers = 0;

  constructor(project) {
    this.#project = project;
  }

  /**
   * Return the JSON value that a function of the submission gives, or resolves to.
   *
   * Nothing stands for itself: `undefined` comes back as `undefined`.
   *
   * @param {string} target `path/to/module.mjs:name`, the path from the project folder; a dotted
   *   name reaches into what the module exports, as a static method.
   * @param {unknown[]} args JSON values.
   * @param {{ timeout_s?: number }} options Wall-clock seconds for the whole process.
   * @throws {Raised} The function threw, or gave something that is no JSON value.
   * @throws {NoAnswer} The process crashed, left early, took too long or said too much.
   */
  call(target, args = [], { timeout_s = 10 } = {}) {
    this.#calls += 1;
    const answer = parsed(target, this.#answer(target, args, timeout_s));
    const raised = answer.raised;
    if (raised === undefined || answer.stage !== "import") this.#answers += 1;
    if (raised !== undefined) throw new Raised(raised);
    return answer.value;
  }

  /** Whether the submission answered; undefined when it was not asked this way. */
  static answered(submission) {
    return submission.#calls === 0 ? undefined : submission.#answers > 0;
  }

  /** Return the one line that the process gave; what it left running ends with it. */
  #answer(target, args, timeout_s) {
    const { NODE_OPTIONS: _, ...env } = process.env;
    // Files rather than pipes: a background process that keeps one open holds nobody up.
    const [asked, complaint, said] = [scratchFile(), scratchFile(), scratchFile()];
    fs.writeSync(asked, JSON.stringify({ project: this.#project, target, args }), 0);
    const done = spawnSync(NODE, ["--no-warnings", PROGRAM], {
      cwd: this.scratch,
      env: { ...env, HOME: this.scratch, TMPDIR: this.scratch },
      stdio: [asked, complaint, complaint, said],
      detached: true,
      timeout: timeout_s * 1000,
      killSignal: "SIGKILL",
    });
    endGroup(done.pid);
    const line = start(said);
    const reason = end(complaint).trim();
    for (const file of [asked, complaint, said]) fs.closeSync(file);
    if (done.error?.code === "ETIMEDOUT") {
      throw new NoAnswer(`${target} gave no answer within ${timeout_s} s`);
    }
    if (done.status !== 0 || line.length > ANSWER_BYTES || !/^[^\n]+\n$/.test(line)) {
      const status = done.error?.code ?? done.signal ?? `exit ${done.status}`;
      throw new NoAnswer(`${target} gave not exactly one answer (${status}): ${reason}`);
    }
    return line;
  }
}

/** Return a file without a name, for writing and reading. */
function scratchFile() {
  const file = path.join(os.tmpdir(), `call-${randomUUID()}`);
  const descriptor = fs.openSync(file, "wx+", 0o600);
  fs.unlinkSync(file);
  return descriptor;
}

function start(file) {
  const bytes = Buffer.alloc(Math.min(fs.fstatSync(file).size, ANSWER_BYTES + 1));
  return bytes.toString("utf8", 0, fs.readSync(file, bytes, 0, bytes.length, 0));
}

function end(file) {
  const { size } = fs.fstatSync(file);
  const bytes = Buffer.alloc(Math.min(size, COMPLAINT_BYTES));
  return bytes.toString("utf8", 0, fs.readSync(file, bytes, 0, bytes.length, size - bytes.length));
}

/** Return an answer; whoever wrote it may have been anybody in that process. */
function parsed(target, line) {
  let answer;
  try {
    answer = JSON.parse(line);
  } catch {
    throw new NoAnswer(`${target} gave an answer that is no JSON`);
  }
  const isObject = Object(answer) === answer && !Array.isArray(answer);
  if (!isObject || !(isValue(answer) || isRaised(answer))) {
    throw new NoAnswer(`${target} gave an answer of the wrong shape`);
  }
  return answer;
}

function isValue(answer) {
  return Object.keys(answer).every((key) => key === "value");
}

function isRaised({ raised, stage, ...others }) {
  const isTold = typeof raised?.type === "string" && typeof raised.message === "string";
  return isTold && STAGES.includes(stage) && Object.keys(others).length === 0;
}

function endGroup(pid) {
  try {
    if (pid > 0) process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended.
  }
}
