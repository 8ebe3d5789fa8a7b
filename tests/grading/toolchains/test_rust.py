"""Rust submissions: what builds, what a check reports, and what cannot be forged."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evalarc.errors import SetupError
from pytest_evalarc.grading.submission import read_submission
from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.grading.toolchains import rust as rust_module
from pytest_evalarc.grading.toolchains.rust import Rust
from tests.adversarial.corpus import attack
from tests.adversarial.submissions import plain_cargo
from tests.grading.rust_attacks import AT_THE_RECEIPT, CANARY, CAUGHT_BY_CARGO
from tests.grading.rust_bench import LIB, LOCK, MANIFEST, RIGHT, RustBench
from tests.needs import needs, needs_bwrap

slow = [pytest.mark.slow, needs_bwrap, needs("cargo")]


@pytest.fixture(scope="session")
def staged_rust(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    folder = tmp_path_factory.mktemp("tools")
    Rust().stage(folder)
    return Rust().tools(folder)


@pytest.fixture
def bench(tmp_path: Path, staged_rust: Tools) -> RustBench:
    return RustBench(root=tmp_path, tools=staged_rust)


def failed_by(body: str) -> str:
    return f"pub fn value() -> i32 {{\n    {body}\n}}\n"


class TestGrading:
    pytestmark = slow

    def test_the_reference_passes_and_the_starter_fails(self, bench):
        """Both controls, or nothing that a check says can be trusted."""
        task = bench.task()

        reference, starter = bench.control(task, "reference"), bench.control(task, "starter")

        assert [step.status for step in reference.steps] == ["pass", "pass", "pass"]
        assert [step.name for step in reference.steps] == [
            "build",
            "cargo_test_lib",
            "cargo_fmt_check",
        ]
        assert [row.status for row in reference.rows] == ["passed"]
        assert [row.status for row in starter.rows] == ["failed"]
        assert starter.rows[0].answered
        assert "checks/only.rs:6:5" in starter.rows[0].detail
        assert "41" in starter.rows[0].detail
        assert "thread" not in starter.rows[0].detail

    def test_what_does_not_compile_is_the_submissions_failure(self, bench):
        """The rest is skipped, and the first error says why."""
        task = bench.task()

        grading = bench.grade(task, bench.submit(task, {LIB: "pub fn value() -> i32 {}\n"}))

        assert grading.status == "graded"
        assert [step.status for step in grading.steps] == ["fail", "skipped", "skipped"]
        assert grading.steps[0].detail.startswith("error[E0308]: mismatched types")
        assert [row.cause.kind for row in grading.rows] == ["build_failed"]

    @pytest.mark.parametrize("broken", ["rustc", "cargo"])
    def test_a_compiler_that_does_not_start_is_no_submissions_failure(self, bench, broken):
        """Every submission would fail by it, the reference first."""
        stub = bench.root / "stubs" / broken
        stub.parent.mkdir()
        stub.write_text("#!/bin/sh\necho no such library >&2\nexit 1\n")
        stub.chmod(0o755)
        tools = replace(
            bench.tools,
            bins=(stub.parent, *bench.tools.bins),
            reads=(stub.parent, *bench.tools.reads),
        )
        broken_bench = replace(bench, tools=tools)

        grading = broken_bench.control(broken_bench.task(), "reference")

        assert grading.status == "infrastructure_error"
        assert "no such library" in grading.cause.detail

    def test_a_submission_behind_a_link_is_invalid(self, bench):
        """A link where sources should be leads anywhere."""
        task = bench.task()
        project = bench.submit(task, {"other/lib.rs": RIGHT}).root
        shutil.rmtree(project / "src")
        (project / "src").symlink_to("other")

        grading = bench.grade(task, read_submission(project))

        assert (grading.status, grading.cause.kind) == ("graded", "invalid_submission")

    def test_a_fixture_lies_where_the_manifest_says(self, bench):
        """A starter names its fixtures as `../fixtures`, in a trial and in every copy."""
        fixture = bench.root / "project" / "evals" / "fixtures" / "answer"
        (fixture / "src").mkdir(parents=True)
        (fixture / "Cargo.toml").write_text(MANIFEST.replace("numbers", "answer"))
        (fixture / LIB).write_text(RIGHT)
        manifest = MANIFEST + '[dependencies]\nanswer = { path = "../fixtures/answer" }\n'
        starter = {"Cargo.toml": manifest, "Cargo.lock": LOCK_WITH_ANSWER}
        task = bench.task(starter=starter, fixtures='"answer"')

        row = bench.check(task, {LIB: "pub use answer::value;\n"})

        assert (row.status, row.detail) == ("passed", "")

    @pytest.mark.parametrize("lost", ["its library", "the right to read a file"])
    def test_nothing_that_is_left_buys_an_exclusion(self, bench, lost):
        """What our own programs stumble over can be the submission's doing."""
        if lost == "the right to read a file" and os.geteuid() != 0:
            pytest.skip("whoever is not root cannot take in such a submission")
        task = bench.task()
        project = bench.submit(task, {LIB: RIGHT}).root
        library = project / LIB
        if lost == "its library":
            library.rename(project / "src" / "other.rs")
        else:
            library.chmod(0)

        grading = bench.grade(task, read_submission(project))

        assert grading.status == "graded"
        assert grading.rows[0].status in ("agent_error", "not_run")
        assert "fail" in [step.status for step in grading.steps]

    def test_a_lock_file_holds(self, bench):
        """Or what is built would depend on the day it is built."""
        task = bench.task(starter={"Cargo.lock": LOCK.replace("0.1.0", "0.2.0")})

        row = bench.step(task, "build", {})

        assert row.status == "fail"
        assert "--locked" in row.detail

    def test_a_starter_needs_no_lock_file(self, bench):
        """Where one is missing there is none to hold to."""
        assert bench.check(bench.task(gone=["Cargo.lock"]), {LIB: RIGHT}).status == "passed"


LOCK_WITH_ANSWER = (
    LOCK.replace('"numbers"', '"answer"')
    + """\

[[package]]
name = "numbers"
version = "0.1.0"
dependencies = [
 "answer",
]
"""
)


class TestOwnTests:
    pytestmark = slow

    @pytest.mark.parametrize(
        ("tests", "status", "said"),
        [
            ("", "pass", ""),
            ("#[test]\nfn a() {}\n#[test]\n#[ignore]\nfn b() {}\n", "pass", ""),
            ("#[test]\nfn a() {\n    panic!(\"no such luck\")\n}\n", "fail", "no such luck"),
            ("#[test]\nfn a() {\n    None\n}\n", "fail", "error[E0308]"),
            ("#[test]\nfn a() {\n    std::process::abort()\n}\n", "fail", ""),
            ("#[test]\nfn a() {\n    std::fs::write(\"src/b\", \"\").unwrap()\n}\n", "pass", ""),
            ("#[test]\nfn a() {\n    std::fs::read_dir(\"../fixtures\").unwrap();\n}\n", "pass",
             ""),
        ],
    )  # fmt: skip
    def test_the_library_is_tested_as_cargo_does_it(self, bench, tests, status, said):
        """However many tests there are, in a copy they may write to, beside the fixtures."""
        row = bench.step(bench.task(), "cargo_test_lib", {LIB: RIGHT + tests})

        assert row.status == status
        assert said in row.detail

    def test_a_crate_without_a_library_has_none(self, bench):
        """There is nothing to do, which is no failure."""
        task = bench.task(starter={"src/main.rs": "fn main() {}\n"}, gone=[LIB])

        assert bench.step(task, "cargo_test_lib", {}).status == "pass"


UGLY = "pub fn value() -> i32 {  42 }\n"


class TestFormatting:
    pytestmark = slow

    @pytest.mark.parametrize(
        ("starter", "files", "status", "said"),
        [
            ({}, {LIB: RIGHT}, "pass", ""),
            ({}, {LIB: UGLY}, "fail", "not formatted: src/lib.rs"),
            ({}, {LIB: "pub mod a;\n", "src/a.rs": UGLY}, "fail", "not formatted: src/a.rs"),
            ({}, {LIB: RIGHT, "src/a.rs": UGLY}, "pass", ""),
            ({}, {LIB: "pub fn value( -> i32\n"}, "fail", "error"),
            ({}, {LIB: RIGHT + "mod a;\n"}, "fail", "Error writing files"),
            ({"build.rs": "fn main() {  }\n"}, {LIB: RIGHT}, "pass", ""),
            ({"build.rs": "fn main() {  }\n", "rustfmt.toml": "no_such_option = 1\n"},
             {LIB: RIGHT}, "pass", ""),
            ({"rustfmt.toml": "hard_tabs = true\n"}, {LIB: RIGHT}, "fail", "src/lib.rs"),
            ({"rustfmt.toml": "hard_tabs = true\n"}, {LIB: RIGHT.replace("    ", "\t")}, "pass",
             ""),
            ({}, {LIB: UGLY, "src/rustfmt.toml": "disable_all_formatting = true\n"}, "fail", ""),
            ({}, {LIB: UGLY, ".rustfmt.toml": "disable_all_formatting = true\n"}, "fail", ""),
        ],
    )  # fmt: skip
    def test_editable_files_of_the_package_are_formatted(self, bench, starter, files, status, said):
        """By the starter's settings and no others; a file that no target reaches is left alone."""
        row = bench.step(bench.task(starter=starter), "cargo_fmt_check", files)

        assert row.status == status
        assert said in row.detail

    def test_a_missing_rustfmt_is_told_when_it_is_asked_for(self, bench, monkeypatch, tmp_path):
        """A task without fmt_check does not need it, and no submission can mend it."""
        found = rust_module._toolchain()
        monkeypatch.setattr(rust_module, "_toolchain", lambda: found._replace(bins=tmp_path))

        grading = bench.control(bench.task(), "reference")

        assert grading.status == "infrastructure_error"
        assert "rustup component add rustfmt" in grading.cause.detail


class TestWhatACheckReports:
    pytestmark = slow

    @pytest.mark.parametrize(
        ("core", "ended", "answered", "said"),
        [
            (failed_by('println!("{}", "x".repeat(300_000));\n    42'), ("passed", None), True, ""),
            (failed_by("std::thread::spawn(|| loop {});\n    42"), ("passed", None), True, ""),
            (failed_by('std::process::Command::new("/bin/sleep").arg("100").spawn().unwrap();\n'
                       "    42"), ("passed", None), True, ""),
            (failed_by('panic!("no answer")'), ("failed", None), True, "src/lib.rs:2:5"),
            ("pub fn other() {}\n", ("agent_error", "collection"), False, "unresolved import"),
            ("pub fn value() -> bool {\n    true\n}\n", ("agent_error", "collection"), False,
             "error["),
            (failed_by("value() + value()"), ("agent_error", "early_exit"), False, "134"),
            (failed_by('eprint!("{}", "x".repeat(5 << 20));\n    std::process::exit(0)'),
             ("agent_error", "early_exit"), False, ""),
        ],
    )  # fmt: skip
    def test_a_submission_gets_what_it_earned(self, bench, core, ended, answered, said):
        """What prints or leaves something running is as good as any other."""
        row = bench.check(bench.task(), {LIB: core})

        assert (row.status, row.cause and row.cause.kind) == ended
        assert row.answered is answered
        assert said in row.detail

    def test_a_check_has_its_deadline(self, bench):
        """Compiling and running share it."""
        row = bench.check(bench.task(deadline=1.5), {LIB: failed_by("loop {}")})

        assert (row.status, row.cause.kind) == ("agent_error", "timeout")

    @pytest.mark.parametrize(
        ("check", "status"),
        [
            ("#[test] fn a() -> Result<(), String> {\n    numbers::value();\n    Ok(())\n}",
             "passed"),
            ("#[test]\nfn a() -> Result<(), String> {\n    Err(numbers::value().to_string())\n}",
             "failed"),
            ("//! A check.\n#![allow(dead_code)]\nmod helper {\n    pub fn f() -> i32 {\n"
             "        numbers::value()\n    }\n}\n#[test]\npub fn a() {\n"
             "    assert_eq!(crate::helper::f(), 42)\n} // the end", "passed"),
            ("#[test]\nfn a() {\n    let root = env!(\"CARGO_MANIFEST_DIR\");\n"
             "    assert_eq!(std::env::var(\"CARGO_MANIFEST_DIR\").unwrap(), root);\n"
             "    assert!(std::path::Path::new(\"src/lib.rs\").exists());\n"
             "    assert!(std::path::Path::new(\"../fixtures\").exists());\n"
             "    std::fs::write(std::env::temp_dir().join(\"a\"), \"\").unwrap();\n}", "passed"),
        ],
    )  # fmt: skip
    def test_a_check_is_compiled_as_an_integration_test_is(self, bench, check, status):
        """It stands at the root of its crate, and runs in the folder of the package."""
        assert bench.check(bench.task(check + "\n"), {LIB: RIGHT}).status == status

    def test_no_step_knows_a_check(self, bench):
        """What compiles the submission could hand on whatever it can read."""
        task = bench.task()

        with bench.session(task, {}) as session:
            steps = session.lab.toolchain.steps(task, session.copy, session.lab.tools)
            asked = [grader.request("") for step in steps for grader in step.graders]
            compiling, running = session.lab.toolchain.check(
                task, task.checks[0], session.copy, session.lab.tools
            )

        assert CANARY.encode() in compiling.request("")
        assert not any(CANARY.encode() in text for text in (*asked, running.request("")))
        assert running.writes == ()


class TestAttacks:
    pytestmark = slow

    @pytest.mark.parametrize("name", CAUGHT_BY_CARGO)
    def test_plain_cargo_is_not_fooled(self, bench, name):
        """An attack that wins there is to be in the corpus."""
        task = bench.task()
        project = bench.submit(task, CAUGHT_BY_CARGO[name]).root
        shutil.copytree(task.root / "checks", project / "tests", dirs_exist_ok=True)

        assert plain_cargo(project, "test", "--test", "only") != 0

    @pytest.mark.parametrize("name", [*CAUGHT_BY_CARGO, *AT_THE_RECEIPT])
    def test_the_receipt_is_not(self, bench, name):
        """Nor does any of them count as a broken grader, which would buy an exclusion."""
        files = {**CAUGHT_BY_CARGO, **AT_THE_RECEIPT}[name]

        row = bench.check(bench.task(), files)

        assert row.status in ("failed", "agent_error")

    def test_a_program_that_nobody_may_read_hides_the_check(self, bench):
        """The same program finds its check as soon as it may read itself."""
        task = bench.task()
        files = attack("rust/answer-search/check-in-a-file").files
        with bench.session(task, files) as session:
            bench.run_step(session, "build")
            row = session.run_check(task.checks[0])
            program = session.copy.build / "checks" / "only" / "check"
            mode = program.stat().st_mode & 0o777
            program.chmod(0o755)
            done = subprocess.run([program], input=b"key", capture_output=True, check=False)

        assert (row.status, mode) == ("failed", 0o111)
        assert b"\npassed key\n" in done.stdout


class TestTheHost:
    pytestmark = pytest.mark.slow

    @pytest.fixture(autouse=True)
    def fresh(self):
        rust_module._find.cache_clear()
        yield
        rust_module._find.cache_clear()

    def test_without_cargo_there_is_a_sentence(self, monkeypatch, tmp_path):
        """It says what to install, and staging says the same."""
        monkeypatch.setenv("PATH", str(tmp_path))

        assert Rust().missing() == "cargo is not on PATH; apt-get install cargo"
        with pytest.raises(SetupError, match="cargo is not on PATH"):
            Rust().stage(tmp_path / "tools")

    @pytest.mark.parametrize(
        ("programs", "said"),
        [
            (
                {"rustup": "echo error: no default toolchain >&2\nexit 1"},
                "no default toolchain; rustup default",
            ),
            ({"rustup": "echo FOLDER/own/cargo"}, "no rustc beside FOLDER/own/cargo"),
            ({"cargo": ""}, "no rustc beside FOLDER/bin/cargo"),
            ({"cargo": "", "rustc": "echo no libLLVM >&2; exit 127"}, "no libLLVM"),
        ],
    )
    def test_a_toolchain_that_is_not_whole_is_told(self, monkeypatch, tmp_path, programs, said):
        """Rustup's own cargo stands for one that need not be there."""
        make_programs(tmp_path / "bin", programs)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))

        assert said.replace("FOLDER", str(tmp_path)) in Rust().missing()

    def test_a_missing_linker_is_told(self, monkeypatch, tmp_path):
        """Cargo comes without one."""
        make_programs(tmp_path / "bin", {"cargo": "", "rustc": ""})
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setattr(rust_module, "SYSTEM_PATH", (str(tmp_path),))

        assert "apt-get install gcc" in Rust().missing()

    def test_a_linker_that_cannot_link_is_told_once(self, monkeypatch, tmp_path):
        """Or the first to fail by it would be a submission."""
        programs = {"cargo": "", "rustc": "[ $# -lt 3 ] || { echo no crt1.o >&2; exit 1; }"}
        make_programs(tmp_path / "bin", programs)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))

        with pytest.raises(SetupError, match="cannot make a program: no crt1"):
            Rust().stage(tmp_path / "tools")


def make_programs(folder: Path, programs: Mapping[str, str]) -> None:
    folder.mkdir()
    for name, script in programs.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n".replace("FOLDER", str(folder.parent)))
        program.chmod(0o755)
