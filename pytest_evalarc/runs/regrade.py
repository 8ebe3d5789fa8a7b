"""Grade kept submissions again: beside the results, which stay as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.counting.outcome import code_view
from pytest_evalarc.counting.regrade import regraded
from pytest_evalarc.errors import DocumentError, SubmissionError, UsageError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.grading.grade import grade
from pytest_evalarc.grading.submission import read_kept
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.task import Task
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.reporting_names import BENCHMARK, REGRADE
from pytest_evalarc.runs.batch import Batch
from pytest_evalarc.runs.resume import require_same
