"""A task folder is a valid task, or every problem in it is told at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evalarc.errors import TaskProblems
from pytest_evalarc.model.pack import Language, PackInfo
from pytest_evalarc.model.task import (
    Check,
    Deadlines,
    Expected,
    Limits,
    Mutant,
    PackRef,
    Task,
)
from pytest_evalarc.tasks.load import content_hash, is_foreign, load_task, prompt_warnings
from tests.tasks.project import LABEL, TOOLCHAINS, Project

HERE = "evals/tasks/tiny"


def test_a_valid_task_holds_all_that_its_folder_says(project: Project) -> None:
    """Everything later is decided from this one value, so nothing may be lost on the way."""
    task = project.load()

    assert task.name == "tiny"
    assert task.brief.prompt == "Make the settings survive a restart."
    assert task.brief.plugins == ("guide",)
    assert (task.kind, task.version, task.toolchain) == ("capability", "0.1.0", "python")
    assert [
        (check.id, check.dimensions, check.deadline_s, check.file) for check in task.checks
    ] == [
        ("persists", ("durability",), 5.0, "checks/persists.py"),
        ("quick", ("speed",), 60.0, "checks/quick.py"),
    ]
    assert task.weights == {"durability": 0.75, "speed": 0.25}
    assert task.deadlines == Deadlines(agent=60.0)
    assert task.brief.agent_deadline_s == 60.0
    assert task.limits == Limits(memory_mib=512)
    assert task.expected == Expected(
        installed=("use-store",), used=("use-store",), not_used=("tune-store",)
    )
    assert [(mutant.name, mutant.target, mutant.overlay) for mutant in task.mutants] == [
        ("memory-only", "durability", None),
        ("slow", "speed", "faults/slow"),
    ]
    assert task.has_solution
    assert [fixture.root for fixture in task.fixtures] == [project.root / "evals/fixtures/store"]
    assert task.lines["checks.quick"] == project.line("[checks.quick]")
    assert task.lines["mutants.slow"] == project.line('[[mutants]]\nname = "slow"')
    assert task.lines["expected"] == project.line("[expected]")


def test_a_task_without_optional_parts_has_the_documented_defaults(project: Project) -> None:
    """The shortest task is the one that a newcomer writes."""
    shutil.rmtree(project.task / "solution")
    (project.task / "checks" / "quick.py").unlink()
    project.write(
        LABEL, 'kind = "regression"\nprompt = "Go."\ntoolchain = "python"\neditable = ["src/"]\n'
    )

    task = project.load()

    assert task.weights == {"persists": 1.0}
    assert task.checks[0].dimensions == ("persists",)
    assert (task.deadlines, task.limits) == (Deadlines(), Limits())
    assert task.editable == ("src",)
    assert not task.has_solution
    assert task.plugins == task.mutants == task.tags == ()


BROKEN_KEYS = [
    # Keys and choices.
    ('kind = "capability"', 'kind = "capabilty"', "kind", 'found "capabilty"; nearest: capability'),
    ("tags =", "tag =", "tag", "is no key that is known here; nearest: tags"),
    ("agent = 60", "agnet = 60", "[deadlines] agnet", "nearest: agent"),
    ("memory_mib", "memory_mb", "[limits] memory_mb", "nearest: memory_mib"),
    ("deadline = 5", "timout = 5", "[checks.persists] timout", "is no key that is known here"),
    ('not_used = ["t', 'not_usd = ["t', "[expected] not_usd", "nearest: not_used"),
    ('target = "speed"', 'why = ""\ntarget = "speed"', "[[mutants]] #2 why", "is no key"),
    ('toolchain = "python"', 'toolchain = "pyton"', "toolchain", "nearest: python"),
    # Exact numbers.
    ("agent = 60", "agent = inf", "[deadlines] agent", "a finite number above 0, found inf"),
    ("agent = 60", "agent = nan", "[deadlines] agent", "a finite number above 0, found nan"),
    ("agent = 60", "agent = 0", "[deadlines] agent", "a finite number above 0, found 0"),
    ("agent = 60", "agent = -1.5", "[deadlines] agent", "a finite number above 0, found -1.5"),
    ("agent = 60", "agent = true", "[deadlines] agent", "a finite number above 0, found true"),
    ("agent = 60", 'agent = "60"', "[deadlines] agent", 'a finite number above 0, found "60"'),
    (
        "agent = 60",
        "agent = 2024-01-01",
        "[deadlines] agent",
        "found the date or time 2024-01-01",
    ),
    (
        "agent = 60",
        f"agent = 0x{'f' * 5000}",
        "[deadlines] agent",
        "found an integer beyond 64 bits",
    ),
    ("= 512", "= 512.0", "[limits] memory_mib", "a whole number above 0, found 512.0"),
    ("= 512", "= true", "[limits] memory_mib", "a whole number above 0, found true"),
    ("= 512", "= -512", "[limits] memory_mib", "a whole number above 0, found -512"),
    ("= 512", f"= {2**63}", "[limits] memory_mib", "found an integer beyond 64 bits"),
    ("deadline = 5", "deadline = -5", "[checks.persists] deadline", "found -5"),
    # Exact kinds of values.
    ('tags = ["storage"]', 'tags = "storage"', "tags", 'a list of strings, found "storage"'),
    ('tags = ["storage"]', 'tags = ["a", 1]', "tags", "a list of strings, found 1 in it"),
    ('tags = ["storage"]', 'tags = ["a b"]', "tags", 'has "a b" in it, which is no name; use'),
    ('tags = ["storage"]', 'tags = ["a\\n"]', "tags", "which is no name"),
    ('tags = ["storage"]', 'tags = ["a", "A"]', "tags", 'names "A" beside "a"; keep one'),
    ('tags = ["storage"]', 'tags = ["skip"]', "tags", "which pytest gives another meaning"),
    ('["src"]', '[["src"]]', "editable", "a list of strings, found a list in it"),
    ('["src"]', '"src"', "editable", 'a list of strings, found "src"'),
    ("prompt =", "fmt_check = 1\nprompt =", "fmt_check", "must be true or false, found 1"),
    ("prompt =", "version = 1\nprompt =", "version", "a string with something in it, found 1"),
    ("prompt =", 'version = ""\nprompt =', "version", 'found ""'),
    ('"Make the settings survive a restart."', '["Go"]', "prompt", "a string with something"),
    ('"Make the settings survive a restart."', '" \\n"', "prompt", "a string with something"),
    ('dimension = "speed"', 'dimension = "a b"', "[checks.quick] dimension", "must be a name"),
    ('plugins = ["guide"]', "plugins = true", "plugins", "a list of strings, found true"),
    (
        'edits = [{ file = "src/app.py", find = "disk", replace = "memory" }]',
        "edits = 0",
        "[[mutants]] #1 edits",
        "a list of tables, found 0",
    ),
    # Prompts.
    # Editable paths.
    ('["src"]', '["src", "/etc"]', "editable", 'names "/etc", which is absolute'),
    ('["src"]', '["src", "a/../b"]', "editable", 'names "a/../b", which has `..` in it'),
    ('["src"]', '["src", "a\\\\b"]', "editable", "has a backslash or a NUL in it"),
    ('["src"]', '["src", "C:/x"]', "editable", 'names "C:/x", which is absolute'),
    ('["src"]', '["."]', "editable", 'names ".", which covers checks/, where checks are put'),
    ('["src"]', '["src", "checks"]', "editable", "covers checks/, where checks are put"),
    ('["src"]', '["src", "./checks/"]', "editable", "covers checks/, where checks are put"),
    ('["src"]', '["src", "checks/a.py"]', "editable", "covers checks/, where checks are put"),
    # Fixtures and plugins.
    ('["store"]', '["stroe"]', "fixtures", "which is not in evals/fixtures; nearest: store"),
    ('["guide"]', '["guide", "othr"]', "plugins", "nor a folder of the project; nearest: other"),
    ('["guide"]', '["guide", "../x"]', "plugins", 'names "../x", which has `..` in it'),
    (
        '["guide"]',
        '["guide", "evals/plugins/guide"]',
        "plugins",
        "names two plugins guide and guide",
    ),
    # Checks and weights.
    ("[checks.quick]", "[checks.quik]", "[checks.quik]", "has no file in checks/; nearest: quick"),
    ("speed = 0.25", "speed = 0", "[weights] speed", "a finite number above 0, found 0"),
    # Expectations.
    (
        'not_used = ["tune-store"]',
        'not_used = ["use-store"]',
        "[expected] not_used",
        'names "use-store", as `used` does; drop it from one',
    ),
    (
        'not_used = ["tune-store"]',
        'not_used = ["tun-store"]',
        "[expected] not_used",
        'names the skill "tun-store", which no plugin at all offers; nearest: tune-store',
    ),
    (
        'installed = ["use-store"]',
        'installed = ["tune-store"]',
        "[expected] installed",
        'names the skill "tune-store", which no plugin of the task offers',
    ),
    (
        'installed = ["use-store"]',
        'installed = ["use-store", "use-store"]',
        "[expected] installed",
        'names "use-store" beside "use-store"; keep one of them',
    ),
    (
        'installed = ["use-store"]',
        'hooks = ["Session Start"]',
        "[expected] hooks",
        'has "Session Start" in it, which is no name',
    ),
    # Mutants.
    ('name = "slow"', 'name = "starter"', "[[mutants]] #2 name", "which is reserved"),
    ('name = "slow"', 'name = "a.b"', "[[mutants]] #2 name", 'must be a name, found "a.b"'),
    ('target = "speed"', 'target = "sped"', "[[mutants]] #2 target", "nearest: speed"),
    ('overlay = "faults/slow"', 'overlay = "no"', "[[mutants]] #2 overlay", "is no folder of"),
    ('overlay = "faults/slow"', 'overlay = "../x"', "[[mutants]] #2 overlay", "has `..` in it"),
    (
        'overlay = "faults/slow"',
        'overlay = "solution"',
        "[[mutants]] #2 overlay",
        "leaves the reference as it is; change its behaviour",
    ),
    (
        'overlay = "faults/slow"',
        'edits = []\noverlay = "faults/slow"',
        "[[mutants]] #2 edits",
        "stand beside an overlay",
    ),
    ('overlay = "faults/slow"', "edits = []", "[[mutants]] #2 edits", "is empty"),
    ('overlay = "faults/slow"', 'edits = "x"', "[[mutants]] #2 edits", "a list of tables"),
    ('"memory" }', '"disk" }', "[[mutants]] #1 edits", "leave the reference as it is"),
    ('find = "disk"', 'find = "None"', "[[mutants]] #1 edits #1 find", "occurs 0 times in src"),
    ('find = "disk"', 'find = "\'"', "[[mutants]] #1 edits #1 find", "occurs 2 times in src"),
    ('find = "disk"', 'find = ""', "[[mutants]] #1 edits #1 find", "is empty"),
    (
        'file = "src/app.py"',
        'file = "src/ap.py"',
        "[[mutants]] #1 edits #1 file",
        'is "src/ap.py", which is no file of the reference; nearest: src/app.py',
    ),
    (
        'file = "src/app.py"',
        'file = "/src/app.py"',
        "[[mutants]] #1 edits #1 file",
        "which is absolute",
    ),
]
"""What task.toml says, what it says instead, and then key and words of the sentence."""

BROKEN_ELSEWHERE = [
    (
        (', replace = "memory"', "", "[[mutants]] #1 edits #1 replace", "is missing; add it"),
        "edits =",
    ),
    (
        ('kind = "capability"\n', "", "kind", "is missing; write one of capability, regression"),
        "prompt =",
    ),
    (
        ('toolchain = "python"\n', "", "toolchain", "is missing; write one of python, rust, node"),
        "kind = ",
    ),
    (
        ("[weights]", "[verifier]\nx = 1\n[weights]", "[verifier]", "is no key that is known here"),
        "[verifier]",
    ),
    (
        (
            "prompt =",
            'prompt_file = "p.md"\nprompt =',
            "prompt",
            "stands beside prompt_file; write exactly one of prompt and prompt_file",
        ),
        "prompt =",
    ),
    (
        (
            'prompt = "Make the settings survive a restart."\n',
            "",
            "prompt",
            "is missing; write exactly one of prompt and prompt_file",
        ),
        "kind = ",
    ),
    (("speed = 0.25", "speed = 0.35", "[weights]", "sum to 1.1, not to 1"), "[weights]"),
    (("speed = 0.25", "speed = 0.2500001", "[weights]", "sum to 1.0000001, not to 1"), "[weights]"),
    (
        ("durability = 0.75\n", "", "[weights]", 'no weight for the dimension "durability"'),
        "[weights]",
    ),
    (('plugins = ["guide"]\n', "", "[expected]", "stands without plugins"), "[expected]"),
    (
        (
            'name = "slow"',
            'name = "Memory-Only"',
            "mutants",
            'has "Memory-Only" beside "memory-only"',
        ),
        "[[mutants]]",
    ),
    (
        ('name = "slow"\n', "", "[[mutants]] #2 name", "is missing; name the fault"),
        '[[mutants]]\ntarget = "speed"',
    ),
    (
        ('target = "speed"\n', "", "[[mutants]] #2 target", "is missing; name a dimension"),
        '[[mutants]]\nname = "slow"',
    ),
    (
        ('overlay = "faults/slow"\n', "", "[[mutants]] #2 edits", "are missing; write either"),
        '[[mutants]]\nname = "slow"',
    ),
]
"""The same, with the text whose line the sentence names instead."""


@pytest.mark.parametrize(
    ("broken", "at"), [*((case, case[1]) for case in BROKEN_KEYS), *BROKEN_ELSEWHERE]
)
def test_a_broken_key_is_one_sentence_with_its_line(
    project: Project, broken: tuple[str, str, str, str], at: str
) -> None:
    """An author mends what a message names: file, line, key, what stands there, what to write."""
    old, new, key, told = broken
    project.edit(old, new)

    (sentence,) = project.problems()

    where, _, problem = sentence.partition(f" {key}: ")
    assert where == f"{LABEL}:{project.line(at)}"
    assert told in problem


BROKEN_FILES = [
    # Checks.
    ("checks/a.b.py", "def test_a(): ...", "", 'would be the check "a.b", which is no name'),
    ("checks/run.py", "def test_a(): ...", "", 'would be the check "run", which is reserved'),
    ("checks/CON.py", "def test_a(): ...", "", 'would be the check "CON", which is reserved'),
    ("checks/installed-x.py", "def test_a(): ...", "", 'check "installed-x", which is reserved'),
    ("checks/not_used-x.py", "def test_a(): ...", "", 'check "not_used-x", which is reserved'),
    ("checks/quick.py", "x = 1\n", "", "holds no test; write one function"),
    ("checks/quick.py", "def test_a(): ...\ndef test_b(): ...\n", ":2", "holds 2 tests (test_a, "),
    ("checks/quick.py", "def test_a(:\n", ":1", "is not Python: "),
    ("checks/data.json", "{}", "", "is no check; a check's file is `<id>.py`"),
    # What a submission may not change, a reference must not either.
    ("solution/main.py", "", "", "is outside `editable`; stay inside"),
    ("solution/srcs/a.py", "", "", "is outside `editable`; stay inside"),
    ("solution/src/app.py/x", "", "", "stands where the starter has another kind of path"),
    # Trees that are copied into trials.
    ("starter/readme.MD", "", "", "collides with README.md; rename one"),
    ("../../fixtures/store/store.py", "", "", "collides with Store.py; rename one"),
]
"""A file, its content, the line after its path and the words of the sentence."""


@pytest.mark.parametrize(("path", "content", "line", "told"), BROKEN_FILES)
def test_a_broken_file_is_one_sentence_with_its_path(
    project: Project, path: str, content: str, line: str, told: str
) -> None:
    """What is wrong in a folder is found by its path, not by reading task.toml again."""
    if path.startswith("solution/src/app.py"):
        (project.task / "solution" / "src" / "app.py").unlink()
        project.edit(project.read().partition("[[mutants]]")[2], "")
        project.edit("[[mutants]]", "")
    if told.endswith("reserved"):
        name = path.removeprefix("checks/").removesuffix(".py")
        project.edit("speed = 0.25", f"speed = 0.125\n{name} = 0.125")
    project.write(f"{HERE}/{path}", content)

    (sentence,) = project.problems()

    shown = f"{HERE}/{path}".replace("tasks/tiny/../../", "")
    where, _, problem = sentence.partition(": ")
    assert where == f"{shown}{line}"
    assert told in problem


@pytest.mark.parametrize("tree", ["starter", "solution/src", "faults/slow/src", "checks"])
@pytest.mark.parametrize("kind", ["link", "fifo", "git"])
def test_no_tree_of_a_task_holds_links_special_files_or_a_history(
    project: Project, tree: str, kind: str
) -> None:
    """A link leads a trial out of its copy, and a history can hold the answer."""
    folder = project.task / tree
    if kind == "link":
        (folder / "x").symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(folder / "x")
    else:
        project.write(f"{HERE}/{tree}/.git/HEAD", "ref: refs/heads/main")

    told = "\n".join(project.problems())

    where = f"{HERE}/{tree}/{'.git' if kind == 'git' else 'x'}"
    assert {
        "link": f"{where}: is a symbolic link to /etc/passwd; put the file itself there",
        "fifo": f"{where}: is neither a file nor a folder; remove it",
        "git": f"{where}: is a git repository, which no task may hold; remove it",
    }[kind] in told


def test_unicode_forms_of_one_name_collide(project: Project) -> None:
    """Some file systems store one of the two forms, and one file would replace the other."""
    project.write(f"{HERE}/starter/caf\u00e9.txt")
    project.write(f"{HERE}/starter/cafe\u0301.txt")

    (sentence,) = project.problems()

    assert "collides with" in sentence


def test_checks_that_differ_by_case_alone_collide(project: Project) -> None:
    """Their results would share a folder on half of all machines."""
    project.write(f"{HERE}/checks/Quick.py", "def test_quick(): ...")
    project.edit("durability = 0.75", "durability = 0.75\nQuick = 0.25")
    project.edit("speed = 0.25\n", "speed = 0.00000000001\n")

    assert project.problems() == [
        f"{HERE}/checks/quick.py: collides with Quick.py; rename one: some file systems cannot "
        "tell them apart"
    ]


def test_a_starter_that_is_too_large_is_told_with_the_limit(project: Project) -> None:
    """It would be copied for every trial, so it fails before the first one."""
    with (project.task / "starter" / "big").open("wb") as file:
        file.truncate(1 << 40)

    told = project.problems()

    assert told[0].startswith(f"{HERE}/starter: big has {1 << 40} bytes")


def test_a_missing_starter_is_told(project: Project) -> None:
    """Without one there is nothing to work on, however complete the rest is."""
    shutil.rmtree(project.task / "starter")

    assert project.problems() == [
        f"{HERE}/starter: is missing; add the project that a trial starts from"
    ]


def test_an_empty_solution_is_told(project: Project) -> None:
    """It would be audited as a reference that is the starter itself."""
    (project.task / "solution" / "src" / "app.py").unlink()
    project.write(LABEL, project.read().partition("[[mutants]]")[0])

    (sentence,) = project.problems()

    assert sentence.startswith(f"{HERE}/solution: holds no file")


def test_mutants_without_a_solution_are_told_once(project: Project) -> None:
    """There is no reference to change, and each anchor need not be told to be missing."""
    shutil.rmtree(project.task / "solution")

    assert project.problems() == [
        f"{LABEL}:{project.line('[[mutants]]')} mutants: stand without solution/, "
        "so there is no reference to change; add solution/"
    ]


def test_a_task_without_checks_needs_something_to_expect(project: Project) -> None:
    """Nothing would be asked at all, and every trial would succeed."""
    shutil.rmtree(project.task / "checks")
    text = project.read().partition("[checks.persists]")[0]
    text = text.replace("[weights]\ndurability = 0.75\nspeed = 0.25\n", "")
    project.write(LABEL, text)
    assert project.load().checks == ()
    assert project.load().weights == {}

    project.write(LABEL, text.partition("[expected]")[0])
    assert project.problems() == [
        f"{HERE}/checks: holds no check; add one file per hidden test; "
        "only a task with [expected] may do without"
    ]


def test_nothing_editable_with_checks_is_told(project: Project) -> None:
    """The bare starter would be graded, whatever a client does."""
    project.edit('editable = ["src"]\n', "")

    (sentence,) = project.problems()

    assert sentence.startswith(f"{LABEL}:1 editable: is missing, so nothing of a submission")


def test_files_of_mutants_stay_inside_what_is_editable(project: Project) -> None:
    """A fault that no submission could have tells nothing about the checks."""
    project.edit('file = "src/app.py", find = "disk"', 'file = "README.md", find = "An app"')
    project.write(f"{HERE}/faults/slow/main.py", "")

    assert project.problems() == [
        f"{LABEL}:{project.line('edits =')} [[mutants]] #1 edits #1 file: changes README.md, "
        "which is outside `editable`; stay inside, as a submission has to",
        f"{LABEL}:{project.line('overlay =')} [[mutants]] #2 overlay: changes main.py, "
        "which is outside `editable`; stay inside, as a submission has to",
    ]


def test_edits_that_overlap_are_told(project: Project) -> None:
    """The order of edits must not decide what a mutant is."""
    project.edit(
        'replace = "memory" }]',
        'replace = "memory" }, { file = "src/app.py", find = "\'di", replace = "\'x" }]',
    )

    (sentence,) = project.problems()

    assert "[[mutants]] #1 edits: overlaps another edit of src/app.py" in sentence


def test_an_anchor_is_looked_up_in_the_reference_and_not_in_the_starter(project: Project) -> None:
    """The reference is what mutants change; the solution wins where both have a file."""
    project.write(f"{HERE}/starter/src/app.py", "disk disk\n")
    assert project.load().mutants[0].edits[0].find == "disk"

    project.write(f"{HERE}/solution/src/app.py", "None\n")
    (sentence,) = project.problems()
    assert "occurs 0 times in src/app.py, not exactly once; copy the text" in sentence


@pytest.mark.parametrize("name", ["run", "Starter", "aux", "latest"])
def test_a_task_folder_with_a_reserved_name_is_told(project: Project, name: str) -> None:
    """Its results would meet files of ours, or could not be stored at all."""
    project.task.rename(project.task.parent / name)

    with pytest.raises(TaskProblems) as caught:
        load_task(project.task.parent / name, root=project.root, toolchains=TOOLCHAINS)

    assert [str(problem) for problem in caught.value.problems] == [
        f"evals/tasks/{name}: has a name that is reserved; rename the folder"
    ]


@pytest.mark.parametrize("name", ["A b", "x.", "a::b", "n" * 101])
def test_a_task_folder_with_no_name_is_told(project: Project, name: str) -> None:
    """Node ids, result folders and JSON keys all carry it."""
    project.task.rename(project.task.parent / name)

    with pytest.raises(TaskProblems, match="has a name that is none here"):
        load_task(project.task.parent / name, root=project.root, toolchains=TOOLCHAINS)


def test_two_tasks_that_differ_by_case_alone_collide(project: Project) -> None:
    """One's results would silently replace the other's; both authors must learn of it."""
    shutil.copytree(project.task, project.task.parent / "Tiny")

    assert project.problems() == [f"{HERE}: collides with the task Tiny; rename one"]


def test_all_problems_are_told_together_and_by_line(project: Project) -> None:
    """An author who mends one fault per run gives up before the last one."""
    project.edit('kind = "capability"', 'kind = "capabilty"')
    project.edit("agent = 60", "agent = inf")
    project.edit("tags =", "tag =")
    project.write(f"{HERE}/checks/quick.py", "x = 1\n")
    (project.task / "starter" / "link").symlink_to("/etc")

    told = project.problems()

    assert [sentence.partition(": ")[0] for sentence in told] == [
        f"{LABEL}:7 tag",
        f"{LABEL}:1 kind",
        f"{LABEL}:{project.line('agent = inf')} [deadlines] agent",
        f"{HERE}/checks/quick.py",
        f"{HERE}/starter/link",
    ]
    with pytest.raises(TaskProblems) as caught:
        project.load()
    assert str(caught.value).count("\n") == 4


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\xef\xbb\xbfkind = 1\n", ":1: starts with a byte order mark; save it as UTF-8"),
        (b"kind = 'x'\nkind = 'y'\n", ":2: is not TOML: Cannot overwrite a value"),
        (b"[a]\n[b]\n[a]\n", ":3: is not TOML: Cannot declare ('a',) twice"),
        (b"a.b = 1\na.b.c = 2\n", ":2: is not TOML: "),
        (b"kind = \n", ":1: is not TOML: Invalid value"),
        (b'\nprompt = """\nno end\n', ":3: is not TOML: "),
        (b"a = 1\nb = '\xff'\n", ":2: byte 0xff is not UTF-8; save it as UTF-8"),
        (b"a = " + b"[" * 5000, ": is nested too deeply"),
    ],
)
def test_a_file_that_is_no_toml_is_one_sentence(
    project: Project, content: bytes, told: str
) -> None:
    """Parsers are lenient or puzzling here, and an author must still find the line."""
    project.write(LABEL, content)

    (sentence,) = project.problems()

    assert sentence.startswith(f"{LABEL}{told}")


def test_an_empty_file_tells_what_a_task_needs(project: Project) -> None:
    """A new task begins as one, so the first message is the list of what to write."""
    project.write(LABEL, "")

    needed = [sentence.removeprefix(f"{LABEL}:1 ").split(":")[0] for sentence in project.problems()]

    assert needed[:3] == ["kind", "prompt", "toolchain"]


def test_windows_line_ends_change_nothing(project: Project) -> None:
    """An editor's habit is no fault, and lines keep their numbers."""
    lf = project.load()
    project.write(LABEL, project.read().replace("\n", "\r\n"))

    crlf = project.load()

    assert crlf.lines == lf.lines
    assert crlf.brief == lf.brief


def test_a_folder_without_task_file_is_told(project: Project) -> None:
    """A name on the command line may lead to a folder that is no task."""
    (project.task / "task.toml").unlink()

    assert project.problems() == [
        f"{LABEL}: cannot be read: No such file or directory; a task is a folder with a task.toml"
    ]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("gone.md", None, 'is "gone.md", which is no file of the task'),
        ("prompt.md", b" \n", 'is "prompt.md", which has nothing in it'),
        ("prompt.md", b"\xff", 'is "prompt.md", which cannot be read as UTF-8'),
        ("../prompt.md", b"Go.", 'is "../prompt.md", which has `..` in it'),
        ("/etc/hostname", None, 'is "/etc/hostname", which is absolute'),
        ("link.md", "/etc/passwd", 'is "link.md", which leads out of the task'),
    ],
)
def test_a_prompt_file_that_cannot_be_used_is_told(
    project: Project, name: str, content: bytes | str | None, told: str
) -> None:
    """A client asked nothing does nothing, and its trials would count."""
    project.edit('prompt = "Make the settings survive a restart."', f'prompt_file = "{name}"')
    if isinstance(content, str):
        (project.task / name).symlink_to(content)
    elif content is not None:
        project.write(f"{HERE}/{name}", content)

    (sentence,) = project.problems()

    assert sentence.startswith(f"{LABEL}:2 prompt_file: {told}")


def test_a_prompt_file_is_read_whole(project: Project) -> None:
    """Long prompts are written as text of their own."""
    project.edit('prompt = "Make the settings survive a restart."', 'prompt_file = "ask/p.md"')
    project.write(f"{HERE}/ask/p.md", "Dö it.\n")

    assert project.load().brief.prompt == "Dö it.\n"


def test_a_link_in_place_of_a_task_folder_is_told(project: Project) -> None:
    """Every digest is of the folder itself, so a link would only fail later and darkly."""
    linked = project.task.parent / "linked"
    linked.symlink_to(project.task, target_is_directory=True)

    with pytest.raises(TaskProblems) as caught:
        load_task(linked, root=project.root, toolchains=TOOLCHAINS)

    (problem,) = caught.value.problems
    assert "evals/tasks/linked: is a symbolic link; put the folder itself there" in str(problem)


def test_a_pack_task_leaves_grading_to_its_pack(project: Project, tmp_path: Path) -> None:
    """Checks, weights and faults are the pack's, and its code is part of the task's identity."""
    folder = tmp_path / "evals" / "tasks" / "kv"
    folder.mkdir()
    text = 'kind = "regression"\nprompt = "Go."\n[pack]\nname = "durable-kv"\nseeds = [3, 5]\n'
    (folder / "task.toml").write_text(text)
    code = tmp_path / "code"
    code.mkdir()
    (code / "pack.py").write_text("1")

    def load() -> Task:
        return load_task(folder, root=tmp_path, toolchains=(), packs={"durable-kv": pack(code)})

    before = load()
    (code / "pack.py").write_text("2")

    assert before.pack == PackRef(
        name="durable-kv",
        seeds=(3, 5),
        language="javascript",
        version="0.2.0",
        domain="coding",
    )
    assert before.toolchain == "node"
    assert before.weights == {"whole": 1.0}
    assert before.checks == (Check(id="restart", dimensions=("whole",), deadline_s=60.0),)
    assert before.mutants == (Mutant(name="forgets", target="whole"),)
    assert before.limits == Limits(memory_mib=64)
    assert before.brief.prompt == "Go."
    assert load().sha256 != before.sha256


def test_a_pack_task_without_a_prompt_asks_for_what_the_pack_asks(
    project: Project, tmp_path: Path
) -> None:
    """The pack's contract is what its cases judge, so nobody has to copy it."""
    folder = tmp_path / "evals" / "tasks" / "kv"
    folder.mkdir()
    (folder / "task.toml").write_text('kind = "regression"\n[pack]\nname = "durable-kv"\n')

    task = load_task(folder, root=tmp_path, toolchains=(), packs={"durable-kv": pack(tmp_path)})

    assert task.brief.prompt == "Write a store."


def pack(code: Path) -> Callable[[], PackInfo]:
    """Return what makes a pack in JavaScript, its code in a folder."""
    language = Language(toolchain="node", command=("{node}", "{workspace}/main.js"))
    return lambda: PackInfo(
        name="durable-kv",
        version="0.2.0",
        domain="coding",
        code=code,
        prompt="Write a store.",
        weights={"whole": 1.0},
        cases={"restart": ("whole",)},
        mutants=[Mutant(name="forgets", target="whole")],
        languages={"javascript": language},
        limits=Limits(memory_mib=64),
    )


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ('name = "durable-vk"', '[pack] name: is "durable-vk", which is no pack; nearest: durable'),
        ("", "[pack] name: is missing"),
        ('name = "durable-kv"\nseeds = []', "[pack] seeds: must be a list of whole numbers"),
        ('name = "durable-kv"\nseeds = [1, true]', "[pack] seeds: must be a list of whole"),
        ('name = "durable-kv"\nseeds = [1, 1]', "[pack] seeds: names a number twice"),
        ('name = "durable-kv"\n[weights]\na = 1', "[weights]: stands beside [pack], which brings"),
        ('name = "durable-kv"\nlanguage = "java"', "nearest: javascript"),
        ('name = "durable-kv"\nversion = "1"', "[pack] version: is no key that is known here"),
        ('name = "durable-kv"\n[checks.a]', "[checks]: stands beside [pack]"),
        ('name = "durable-kv"\n[[mutants]]', "mutants: stands beside [pack]"),
    ],
)
def test_a_broken_pack_task_is_told(project: Project, extra: str, told: str) -> None:
    """What a pack ignores must not look as if it counted."""
    folder = project.root / "evals" / "tasks" / "kv"
    folder.mkdir()
    (folder / "task.toml").write_text(f'kind = "regression"\nprompt = "Go."\n[pack]\n{extra}\n')

    with pytest.raises(TaskProblems) as caught:
        load_task(
            folder,
            root=project.root,
            toolchains=(),
            packs={"durable-kv": pack(project.root / "evals")},
        )

    (problem,) = caught.value.problems
    assert told in str(problem)


def test_the_content_hash_sees_the_task_its_fixtures_and_its_plugins(project: Project) -> None:
    """A result names what it was measured on, so every part that a trial sees counts."""
    digests = {project.load().sha256}
    for path in (
        f"{HERE}/starter/README.md",
        f"{HERE}/checks/quick.py",
        "evals/fixtures/store/Store.py",
        "evals/plugins/guide/skills/use-store/SKILL.md",
    ):
        file = project.root / path
        project.write(path, file.read_text() + "\n")
        digests.add(project.load().sha256)
    (project.task / "starter" / "README.md").chmod(0o755)
    digests.add(project.load().sha256)

    assert len(digests) == 6


def test_the_content_hash_leaves_out_what_tools_leave_behind(project: Project) -> None:
    """A run must not change what it ran, nor must an unrelated plugin."""
    before = project.load().sha256

    project.write(f"{HERE}/checks/__pycache__/quick.cpython-311.pyc", "x")
    project.write("evals/fixtures/store/target/debug/store", "x")
    project.write("evals/plugins/other/skills/tune-store/more.md", "x")

    assert project.load().sha256 == before


def test_the_content_hash_tells_parts_apart(project: Project) -> None:
    """Moving a file from a fixture to a plugin of the same shape is another task."""
    task = project.load()

    assert content_hash(task.root, fixtures=task.fixtures, plugins=task.plugins) == task.sha256
    assert content_hash(task.root, fixtures=task.plugins, plugins=task.fixtures) != task.sha256


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ('version = "1.0"\n[metadata]\nauthor = "a"\n[verifier]\ntimeout_sec = 9\n', True),
        ("\ufeff[environment]\ncpus = 1\n", True),
        ("[[steps]]\nname = 'a'\n", True),
        ('kind = "capability"\n[metadata]\n', False),
        ('prompt = "Go."\n[agent]\n', False),
        ("[deadlines]\nagent = 5\n", False),
        ("metadata = 1\n", False),
        ("", False),
        ("[metadata\n", False),
    ],
)
def test_another_tools_task_file_is_known_by_its_tables(
    tmp_path: Path, text: str, foreign: bool
) -> None:
    """Installing the plugin must not break a project of theirs, nor hide a typo of ours."""
    (tmp_path / "task.toml").write_text(text, "utf-8")

    assert is_foreign(tmp_path) is foreign


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("Use Symposium to do it.", ["symposium"]),
        ("Ask the guide, then cargo-agents.", ["cargo-agents", "guide"]),
        ("Write a guidebook for the misguided; a style-guide too.", []),
    ],
)
def test_a_prompt_that_names_the_treatment_is_warned_about(
    project: Project, prompt: str, named: list[str]
) -> None:
    """It works, so it is no problem; but it makes the configurations differ by more."""
    project.edit("Make the settings survive a restart.", prompt)

    warnings = prompt_warnings(project.load())

    assert warnings == tuple(
        f'{project.task / "task.toml"}:2 prompt: names "{name}", a part of the treatment; '
        "ask for the result alone"
        for name in named
    )
