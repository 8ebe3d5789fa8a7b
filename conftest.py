"""Repository-wide pytest set-up: pytest in pytest, and what tests need from the machine."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

# Test helpers are imported as `tests.<module>`, and so is what makes a release and the site. The
# folder that holds them is not put on the path: a build leaves metadata there, by which pytest
# would know the package a second time.
for _name in ("tests", "release", "docsite"):
    _helpers = ModuleType(_name)
    _helpers.__path__ = [str(Path(__file__).parent / _name)]
    sys.modules.setdefault(_name, _helpers)

# A shell lets what it runs in the background ignore Ctrl-C, and with the tests all that they start
# would ignore it: whoever waits for the end of what was interrupted would wait for ever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["pytester", "tests.ids", "tests.needs"]

# A claim about values is no claim about time, and a busy machine is no reason to fail. Who only
# runs evals here has no need of the package.
if find_spec("hypothesis"):
    from hypothesis import settings

    settings.register_profile("tests", deadline=None)
    # What `nox -s fuzz` runs with; tests/fuzz/forms.py says how hard each test then tries.
    settings.register_profile("fuzz", deadline=None, print_blob=True)
    settings.load_profile("tests")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Keep what is imported and collected out of every later search for garbage.

    All of it lives as long as the session. Thousands of tests are millions of objects, of which
    each full search takes a third of a second, and each pytest in pytest makes five at its end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
