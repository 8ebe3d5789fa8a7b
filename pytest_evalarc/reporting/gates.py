"""What the documents of a session say to its gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_evalarc.counting.gate import Decision, Document, Gate, decide
from pytest_evalarc.model.base import JsonObject, Model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.summary import Summary
from pytest_evalarc.reporting.batch import Documents


def decide_gates(
    gates: Sequence[Gate], documents: Documents, *, root: Path
) -> tuple[Decision, ...]:
    """Return what a session's documents say to each gate, in the order of the gates.

    Args:
        gates: The gates.
        documents: All that the session adds up to; only kinds that a gate is about are looked at.
        root: The project's root, below which paths are told without it.
    """
    wanted = {kind for gate in gates for kind in gate.kinds}
    found = [each for each in _documents(documents, root) if each.kind in wanted]
    return tuple(decide(gate, found) for gate in gates)


def _documents(documents: Documents, root: Path) -> Iterator[Document]:
    for benchmark, path in documents.benchmarks:
        yield _benchmark(benchmark, path, root)
    for report in documents.regrades:
        yield _benchmark(report.benchmark, report.path, root)
    for audit, path in documents.audits:
        yield Document(
            kind="audit",
            subject=f"{audit.task.name}: audit",
            where=_shown(path, root),
            data=_data(audit),
        )
    for evaluation, path in documents.evaluations:
        yield Document(
            kind="evaluation",
            subject=f"{evaluation.task.name}: submission",
            where=_shown(path, root),
            data=_data(evaluation),
        )
    if documents.summary is not None:
        yield from _summary(*documents.summary, root)


def _summary(summary: Summary, path: Path, root: Path) -> Iterator[Document]:
    where = _shown(path, root)
    for across in summary.across_tasks:
        subject = f"all tasks with {across.client}"
        yield Document(kind="summary", subject=subject, where=where, data=_data(across))
    for row in summary.tasks:
        subject = f"{row.task} with {row.client}"
        yield Document(kind="summary row", subject=subject, where=where, data=_data(row))


def _benchmark(benchmark: Benchmark, path: Path, root: Path) -> Document:
    return Document(
        kind="benchmark",
        subject=f"{benchmark.task} with {benchmark.client}",
        where=_shown(path, root),
        data=_data(benchmark),
    )


def _data(document: Model) -> JsonObject:
    data = document.to_json()
    if not isinstance(data, dict):
        raise AssertionError("a whole document is a JSON object")
    return data


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
