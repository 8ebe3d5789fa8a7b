"""Errors that a user can mend: where, what was found, what to do."""

from __future__ import annotations


class EvalArcError(Exception):
    """One sentence for a user: where it is, what was found, and what to do.

    Args:
        where: File with key and line, option, or program.
        problem: What was found there.
        hint: What the reader can do about it; may be empty.
    """

    def __init__(self, where: str, problem: str, hint: str = "") -> None:
        super().__init__(where, problem, hint)
        self.where = where
        self.problem = problem
        self.hint = hint

    def __str__(self) -> str:
        sentence = f"{self.where}: {self.problem}"
        return f"{sentence}; {self.hint}" if self.hint else sentence


class TaskError(EvalArcError):
    """A task folder breaks a rule of tasks; one instance per problem."""


class TaskProblems(EvalArcError):  # noqa: N818 - it reads as what it holds: all problems of one task.
    """Every problem of one task, told together."""

    def __init__(self, problems: tuple[TaskError, ...]) -> None:
        self.problems = problems
        super().__init__(problems[0].where, problems[0].problem, problems[0].hint)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class UsageError(EvalArcError):
    """An option, a name or a setting is wrong; the session ends before any trial."""


class SetupError(EvalArcError):
    """A trial could not be prepared, or a pre-launch check failed."""


class InfrastructureError(EvalArcError):
    """The harness broke while it graded: never the submission's fault."""


class SubmissionError(EvalArcError):
    """A submission cannot be graded as it stands: a failed trial, not a broken harness."""


class DocumentError(EvalArcError):
    """A file that this project wrote, or should have written, cannot be read back."""


def nearest(name: str, known: tuple[str, ...], *, most: int = 3) -> str:
    """Return the known names closest to a misspelt one, as words for a hint.

    Args:
        name: What the user wrote.
        known: Names that exist; may be empty.
        most: How many to name at most.

    Returns:
        `"nearest: a, b"`, or `"known: …"` when nothing is close, or an empty string.
    """
    import difflib

    close = difflib.get_close_matches(name, known, n=most, cutoff=0.5)
    if close:
        return f"nearest: {', '.join(close)}"
    return f"known: {', '.join(sorted(known))}" if known else ""
