"""`pytest-evalarc`: what can be done with tasks and results without running pytest."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn, TypeAlias

from pytest_evalarc import __version__
from pytest_evalarc.cli.choices import FAIL_ON, FORMATS
from pytest_evalarc.cli.status import Status
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.across import ACROSS

NO_COMMAND = "name a command: `init` makes a first task, and --help lists all"

Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Returns:
        As `Status` says. A command that answers no question and is refused gives 1.
    """
    parsed = _parser().parse_args(arguments)
    try:
        status = int(parsed.run(parsed))
        sys.stdout.flush()
    except EvalArcError as error:
        print(f"pytest-evalarc: {printable(str(error))}", file=sys.stderr)
        return _refused(error, parsed.refused)
    except BrokenPipeError:
        return _unread()
    return status


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command by its words, as `tools install`."""

    def below(
        parser: argparse.ArgumentParser, words: str
    ) -> Iterator[tuple[str, argparse.ArgumentParser]]:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for word, inner in action.choices.items():
                    yield from below(inner, f"{words} {word}".strip())
                return
        yield words, parser

    return dict(below(_parser(), ""))


def _unread() -> Status:
    """Give up what nobody reads, as `head` does once it has enough."""
    # The interpreter writes what is left when it ends, and would complain of the same again.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return Status.UNREAD


def _refused(error: EvalArcError, status: Status) -> Status:
    from pytest_evalarc.counting.comparison import IncomparableError

    return Status.INCOMPARABLE if isinstance(error, IncomparableError) else status


class _Parser(argparse.ArgumentParser):
    """Gives a wrong call a status that is no answer of a command."""

    def error(self, message: str) -> NoReturn:
        self.exit(Status.REFUSED, f"{self.format_usage()}{self.prog}: {printable(message)}\n")


def _parser() -> _Parser:
    parser = _Parser(
        prog="pytest-evalarc",
        description="What can be done with tasks and results without running pytest.",
        epilog="Begin with `pytest-evalarc init`, which makes a first task and says what to run "
        "next; `pytest-evalarc doctor` says what this machine lacks.",
    )
    parser.set_defaults(refused=Status.NO, run=lambda _: parser.error(NO_COMMAND))
    parser.add_argument("--version", action="version", version=f"pytest-evalarc {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")
    benchmark = commands.add_parser(
        "benchmark",
        help="compute the documents of a folder again from what lies beside plan.json",
    )
    benchmark.add_argument("folder", type=Path, help="a folder that holds plan.json")
    benchmark.set_defaults(run=_benchmark)
    summary = commands.add_parser(
        "summary", help="compute what a batch shows over all of its tasks and clients again"
    )
    summary.add_argument("batch", type=Path, metavar="RESULTS/BATCH", help="as results/<batch>")
    summary.set_defaults(run=_summary)
    remove = commands.add_parser("prune", help="remove what batches left behind")
    remove.add_argument(
        "--root", type=Path, metavar="DIR", help="evaluation root (default: this user's own)"
    )
    remove.add_argument("--results", type=Path, metavar="DIR", help="remove old results here too")
    remove.add_argument(
        "--keep", type=int, metavar="N", help="batches of each task and client that stay"
    )
    remove.add_argument(
        "--cache", type=int, metavar="MIB", help="remove the oldest kept gradings beyond this size"
    )
    remove.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    remove.set_defaults(run=_prune)
    _add_tasks(commands)
    _add_init(commands)
    _add_trajectory(commands)
    _add_compare(commands)
    _add_accept(commands)
    _add_merge(commands)
    _add_export(commands)
    _add_import(commands)
    _add_verify(commands)
    _add_transcript(commands)
    _add_report(commands)
    _add_tools(commands)
    _add_doctor(commands)
    return parser


def _add_tasks(commands: Commands) -> None:
    tasks = commands.add_parser(
        "tasks", help="list the tasks of a folder, and the packs that a task can name"
    )
    tasks.add_argument(
        "folder",
        type=Path,
        nargs="?",
        metavar="DIR",
        help="folder of tasks (default: evals/tasks below the current folder)",
    )
    tasks.add_argument("--json", action="store_true", help="print one JSON document")
    tasks.set_defaults(run=_tasks, refused=Status.REFUSED)


def _add_init(commands: Commands) -> None:
    init = commands.add_parser("init", help="make a new task that is valid, to be changed")
    init.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        default="first-task",
        help="the task's name, which is that of its folder (default: first-task)",
    )
    init.add_argument(
        "--language",
        help="python, node or rust: that of a small whole task (default: python); or pack, for "
        "--pack durable-kv",
    )
    init.add_argument("--pack", metavar="PACK", help="make a task that this pack grades instead")
    init.add_argument(
        "--pack-language", metavar="LANGUAGE", help="of the pack's candidates (default: its first)"
    )
    init.add_argument(
        "--tasks",
        type=Path,
        metavar="DIR",
        help="folder of tasks (default: evals/tasks below the current folder)",
    )
    init.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="also make this folder, with the pack's prompt and the starter of a candidate",
    )
    init.set_defaults(run=_init)


def _add_trajectory(commands: Commands) -> None:
    area = commands.add_parser(
        "trajectory", help="say how much of a budget a submission spent at which score"
    )
    area.add_argument(
        "checkpoints",
        type=Path,
        metavar="CHECKPOINTS.json",
        help="an array of objects with elapsed_seconds and evaluation, a whole evaluation.json",
    )
    area.add_argument(
        "--budget-seconds",
        type=float,
        metavar="B",
        required=True,
        help="what the work was given, in seconds",
    )
    area.add_argument("--output", type=Path, metavar="FILE", help="write the document here")
    area.add_argument("--svg", type=Path, metavar="FILE", help="draw the curve here")
    area.set_defaults(run=_trajectory, refused=Status.REFUSED)


def _add_compare(commands: Commands) -> None:
    compare = commands.add_parser(
        "compare",
        help="say what became better and worse between two evaluations, batches or audits",
    )
    compare.add_argument(
        "baseline",
        type=Path,
        metavar="BASELINE",
        help="an evaluation.json, results (as results/<batch>), or the word accepted",
    )
    compare.add_argument("current", type=Path, metavar="CURRENT", help="another one")
    compare.add_argument("--output", type=Path, metavar="FILE", help="write the document here")
    compare.add_argument(
        "--markdown",
        type=Path,
        nargs="?",
        const=Path("-"),
        metavar="FILE",
        help="write a summary for a pull request here (default: print it, and no document)",
    )
    compare.add_argument(
        "--fail-on",
        action="append",
        choices=FAIL_ON,
        default=[],
        help="a change that gives the status 1; repeatable (default: regressed)",
    )
    compare.add_argument(
        "--across",
        action="append",
        choices=ACROSS,
        default=[],
        help="what may differ, as it is what the comparison is about; repeatable",
    )
    compare.add_argument(
        "--accepted",
        type=Path,
        metavar="DIR",
        help="folder of accepted results (default: evals/accepted)",
    )
    compare.set_defaults(run=_compare, refused=Status.REFUSED)


def _add_accept(commands: Commands) -> None:
    keep = commands.add_parser(
        "accept", help="keep results in the repository, for later ones to be compared with"
    )
    keep.add_argument(
        "results", type=Path, metavar="RESULTS", help="as results/<batch>, or one folder of results"
    )
    keep.add_argument(
        "--into",
        type=Path,
        metavar="DIR",
        help="folder of accepted results (default: evals/accepted)",
    )
    keep.set_defaults(run=_accept)


def _add_merge(commands: Commands) -> None:
    join = commands.add_parser(
        "merge", help="join the shards of a batch into the results that one machine would write"
    )
    join.add_argument(
        "results",
        type=Path,
        nargs="+",
        metavar="SHARD_RESULTS",
        help="the folder of results of each --evalarc-shard",
    )
    join.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="RESULTS",
        required=True,
        help="the new folder of results, which is not there yet",
    )
    join.add_argument(
        "--batch", metavar="NAME", help="a batch (default: the only one that has shards there)"
    )
    join.set_defaults(run=_merge)


def _add_export(commands: Commands) -> None:
    out = commands.add_parser("export", help="write results in a form that other programs read")
    out.add_argument(
        "results", type=Path, metavar="RESULTS", help="as results/<batch>, or one folder of results"
    )
    out.add_argument("--format", choices=FORMATS, required=True, help="which form")
    out.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write it here (default: print it)"
    )
    out.add_argument(
        "--tasks",
        type=Path,
        metavar="DIR",
        help="folder of tasks, for the places of mutants (default: evals/tasks)",
    )
    out.set_defaults(run=_export)


def _add_import(commands: Commands) -> None:
    take = commands.add_parser("import", help="make tasks out of the cases of other programs")
    take.add_argument(
        "source",
        type=Path,
        metavar="SOURCE",
        help="a `claude plugin eval` case, a skill-creator evals.json, or a Harbor task",
    )
    take.add_argument(
        "--into",
        type=Path,
        metavar="DIR",
        required=True,
        help="folder of the new task, as evals/tasks/NAME",
    )
    take.set_defaults(run=_import)


def _add_verify(commands: Commands) -> None:
    verify = commands.add_parser("verify", help="say whether documents agree with their own rows")
    verify.add_argument(
        "reports", type=Path, nargs="+", metavar="REPORT", help="a document, or a folder of them"
    )
    verify.set_defaults(run=_verify, refused=Status.REFUSED)


def _add_transcript(commands: Commands) -> None:
    transcript = commands.add_parser("transcript", help="show what was said and done in a trial")
    transcript.add_argument(
        "folder",
        type=Path,
        metavar="TRIAL",
        help="a trial's folder, as results/<task>/<client>/<batch>/trial-1-baseline",
    )
    transcript.add_argument(
        "--full", action="store_true", help="show the results of tools whole, however long"
    )
    transcript.add_argument(
        "--atif",
        type=Path,
        nargs="?",
        const=Path("-"),
        metavar="FILE",
        help="write it as a trajectory in the ATIF format instead (default: print that)",
    )
    transcript.add_argument(
        "--tasks",
        type=Path,
        metavar="DIR",
        help="folder of tasks, for the prompt (default: evals/tasks below the current folder)",
    )
    transcript.set_defaults(run=_transcript)


def _add_report(commands: Commands) -> None:
    report = commands.add_parser("report", help="write a folder of results as one page for people")
    report.add_argument("results", type=Path, metavar="RESULTS", help="the folder of results")
    report.add_argument(
        "--batch", metavar="NAME", help="a batch (default: the newest of each task and client)"
    )
    report.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the page (default: evalarc.html in the current folder)",
    )
    report.add_argument(
        "--tasks",
        type=Path,
        metavar="DIR",
        help="folder of tasks, for prompts and starters (default: evals/tasks below the current "
        "folder)",
    )
    report.set_defaults(run=_report)


def _add_tools(commands: Commands) -> None:
    tools = commands.add_parser("tools", help="what trials with a real agent are run from")
    actions = tools.add_subparsers(required=True, metavar="ACTION")
    install = actions.add_parser(
        "install", help="let npm install the agents' command lines and srt, in pinned versions"
    )
    install.add_argument(
        "--into", type=Path, metavar="DIR", help="a folder of its own (default: where it is found)"
    )
    install.set_defaults(run=_tools_install)


def _add_doctor(commands: Commands) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="say what this machine has, and what it lacks",
        epilog="Status: 0 when trials with the embedded clients run on this machine, 1 when they "
        "do not, 4 when it is wrongly called.",
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON document")
    doctor.set_defaults(run=_doctor, refused=Status.REFUSED)


def _benchmark(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.reporting.batch import write_document
    from pytest_evalarc.reporting.regrade import write_regrade
    from pytest_evalarc.runs.regrade import numbers

    folder: Path = parsed.folder
    _, path = write_document(folder)
    print(printable(str(path)))
    for number in numbers(folder):
        print(printable(str(write_regrade(folder, number).path)))
    return 0


def _summary(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.reporting.summary import write_summary

    batch: Path = parsed.batch
    summary, path = write_summary(batch.parent, batch.name)
    print(printable(str(path)))
    print(printable(summary.interpretation, limit=10_000))
    return 0


def _prune(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.prune import prune

    return prune(
        root=parsed.root,
        results=parsed.results,
        keep=parsed.keep,
        cache_mib=parsed.cache,
        dry_run=parsed.dry_run,
    )


def _tasks(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.tasks import tasks

    return tasks(folder=parsed.folder, as_json=parsed.json)


def _init(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.init import init

    return init(
        parsed.name,
        tasks=parsed.tasks,
        language=parsed.language,
        pack=parsed.pack,
        pack_language=parsed.pack_language,
        workspace=parsed.workspace,
    )


def _trajectory(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.trajectory import run_trajectory

    return run_trajectory(
        parsed.checkpoints,
        budget_seconds=parsed.budget_seconds,
        output=parsed.output,
        svg=parsed.svg,
    )


def _compare(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.compare import run_compare

    return run_compare(
        parsed.baseline,
        parsed.current,
        output=parsed.output,
        markdown=parsed.markdown,
        fail_on=parsed.fail_on,
        across=parsed.across,
        accepted=parsed.accepted,
    )


def _accept(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.accept import accept

    return accept(parsed.results, into=parsed.into)


def _merge(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.merge import run_merge

    return run_merge(parsed.results, output=parsed.output, batch=parsed.batch)


def _export(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.export import export

    return export(parsed.results, kind=parsed.format, output=parsed.output, tasks=parsed.tasks)


def _import(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.importing import import_tasks

    return import_tasks(parsed.source, into=parsed.into)


def _verify(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.verify import run_verify

    return run_verify(parsed.reports)


def _transcript(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.transcript import run_transcript

    return run_transcript(parsed.folder, tasks=parsed.tasks, atif=parsed.atif, full=parsed.full)


def _report(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.report import run_report

    return run_report(parsed.results, batch=parsed.batch, output=parsed.output, tasks=parsed.tasks)


def _tools_install(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.tools_install import tools_install

    return tools_install(into=parsed.into)


def _doctor(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.doctor import doctor

    return doctor(as_json=parsed.json)
