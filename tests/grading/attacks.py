"""Submissions that do nothing of what was asked, and try to pass all the same.

Each is `app/core.py` of the small task, with further files beside it. The naive runner is plain
pytest in the submission's folder: an attack that does not win even there defends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.grading.small_task import WRONG


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One way to pass without doing the work."""

    name: str
    core: str = WRONG
    files: Mapping[str, str] = field(default_factory=dict)
    wins_naively: bool = True

    @property
    def submitted(self) -> dict[str, str]:
        return {"app/core.py": self.core, **self.files}

    @property
    def editable(self) -> tuple[str, ...]:
        """The first folder or file of each path: nothing is kept from an attack by where it is."""
        return tuple(dict.fromkeys(path.partition("/")[0] for path in self.submitted))


FORGED_REPORT = """\
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome, report.longrepr = 'passed', None
    return report
"""
LEAVES = "import os\n\nos._exit(0)\n"
NO_TEST = """\
def pytest_collection_modifyitems(items):
    items[:] = []


def pytest_sessionfinish(session):
    session.exitstatus = 0


def pytest_unconfigure(config):
    import os

    os._exit(0)
"""
RECORDS = "".join(
    f"        b'{line}\\n'\n"
    for line in (
        '{"kind": "collected", "ids": ["test_values"]}',
        '{"kind": "outcome", "id": "test_values", "outcome": "passed", "when": "call"}',
        '{"kind": "end", "ran": 1, "exitstatus": 0, "changed": []}',
    )
)

DIVERTS = """\
import json
import os


def pipes():
    for descriptor in range(3, 40):
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith("pipe:"):
                yield descriptor
        except OSError:
            continue


found = list(pipes())
saved = [os.dup(descriptor) for descriptor in found]
caught = os.open(os.environ.get("TMPDIR", "/tmp") + "/caught", os.O_RDWR | os.O_CREAT)
for descriptor in found:
    os.dup2(caught, descriptor)


def value():
    lines = os.pread(caught, 100000, 0).splitlines(keepends=True)
    told = json.loads(lines[0].partition(b" ")[2] or lines[0])
    rest = {"id": told["ids"][0], "outcome": "passed", "when": "call", "answered": True}
    forged = [{**told, "kind": "outcome", **rest}, {**told, "kind": "end", "ran": 1}]
    for record in forged:
        text = json.dumps(record).encode()
        lines.append(lines[0].partition(b" ")[0] + b" " + text + b"\\n")
    for descriptor in saved:
        os.write(descriptor, b"".join(lines))
    os._exit(0)


def rows():
    return []
"""

CLOSED = (
    Attack(name="diverts the channel and answers in its place", core=DIVERTS, wins_naively=False),
    Attack(name="leaves when imported", core=LEAVES),
    Attack(name="leaves when called", core="def value():\n    import os\n\n    os._exit(0)\n"),
    Attack(
        name="leaves at exit",
        core=f"import atexit\nimport os\n\natexit.register(os._exit, 0)\n{WRONG}",
    ),
    Attack(
        name="leaves from a thread",
        core=(
            "import os\nimport threading\nimport time\n\n"
            "threading.Timer(0.05, os._exit, [0]).start()\n\n\n"
            "def value():\n    time.sleep(1)\n    return 41\n"
        ),
    ),
    Attack(
        name="leaves from an audit hook",
        core=(
            "import os\nimport sys\n\n"
            "sys.addaudithook(lambda event, _: event == 'open' and os._exit(0))\n"
            f"{WRONG}"
        ),
    ),
    Attack(
        name="replaces itself by a program that succeeds",
        core="import os\n\nos.execv('/bin/true', ['true'])\n",
    ),
    Attack(
        name="raises SystemExit(0)",
        core="import sys\n\n\ndef value():\n    sys.exit(0)\n",
        wins_naively=False,
    ),
    Attack(
        name="calls pytest.exit with status 0",
        core="def value():\n    import pytest\n\n    pytest.exit('x', returncode=0)\n",
    ),
    Attack(name="skips", core="def value():\n    import pytest\n\n    pytest.skip('x')\n"),
    Attack(
        name="skips its module",
        core="import pytest\n\npytest.skip('x', allow_module_level=True)\n",
        wins_naively=False,
    ),
    Attack(
        name="lacks an import that is optional",
        core="def value():\n    import pytest\n\n    pytest.importorskip('no_such_module')\n",
    ),
    Attack(
        name="fails as expected", core="def value():\n    import pytest\n\n    pytest.xfail('x')\n"
    ),
    Attack(
        name="raises pytest's own skip",
        core="def value():\n    import unittest\n\n    raise unittest.SkipTest('x')\n",
    ),
    Attack(name="conftest forges the report", files={"conftest.py": FORGED_REPORT}),
    Attack(name="conftest deselects the test", files={"conftest.py": NO_TEST}),
    Attack(
        name="conftest in the package", files={"app/conftest.py": FORGED_REPORT}, wins_naively=False
    ),
    Attack(
        name="pytest.ini loads a plugin",
        files={"pytest.ini": "[pytest]\naddopts = -p evil\n", "evil.py": FORGED_REPORT},
    ),
    Attack(
        name="tox.ini loads a plugin",
        files={"tox.ini": "[pytest]\naddopts = -p evil\n", "evil.py": FORGED_REPORT},
    ),
    Attack(
        name="setup.cfg loads a plugin",
        files={"setup.cfg": "[tool:pytest]\naddopts = -p evil\n", "evil.py": FORGED_REPORT},
    ),
    Attack(
        name="pyproject.toml loads a plugin",
        files={
            "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p evil'\n",
            "evil.py": FORGED_REPORT,
        },
    ),
    Attack(
        name="entry point of a distribution",
        files={
            "evil.py": LEAVES,
            "x-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: x\nVersion: 1\n",
            "x-1.dist-info/entry_points.txt": "[pytest11]\nx = evil\n",
        },
    ),
    Attack(name="sitecustomize", files={"sitecustomize.py": LEAVES}),
    Attack(name="usercustomize", files={"usercustomize.py": LEAVES}, wins_naively=False),
    Attack(name="path file", files={"a.pth": "import os; os._exit(0)\n"}, wins_naively=False),
    Attack(name="module called pytest", files={"pytest.py": LEAVES}),
    Attack(name="package called _pytest", files={"_pytest/__init__.py": LEAVES}),
    Attack(name="module called json", files={"json.py": LEAVES}),
    Attack(name="module called submission", files={"submission.py": LEAVES}, wins_naively=False),
    Attack(
        name="replaced functions of the runner",
        core=(
            "import _pytest.python as python\nimport _pytest.runner as runner\n\n"
            "runner.call_and_report = lambda *args, **kwargs: None\n"
            "python.pytest_pyfunc_call = lambda pyfuncitem: True\n"
            f"runner.pytest_runtest_call = lambda item: None\n{WRONG}"
        ),
        wins_naively=False,
    ),
    Attack(
        name="replaced Function.runtest",
        core=(
            "import _pytest.python as python\n\n"
            f"python.Function.runtest = lambda self: None\n{WRONG}"
        ),
    ),
    Attack(
        name="replaced Function.runtest, and leaves before it is noticed",
        core=(
            "import os\n\nimport _pytest.config as config\nimport _pytest.python as python\n\n"
            "python.Function.runtest = lambda self: None\n"
            "config.Config._ensure_unconfigure = lambda self: os._exit(0)\n"
            f"{WRONG}"
        ),
    ),
    Attack(
        name="replaced class method of TestReport",
        core=(
            "from _pytest.reports import TestReport\n\n"
            "original = TestReport.from_item_and_call.__func__\n\n\n"
            "def forged(cls, item, call):\n"
            "    call.excinfo = None\n"
            "    return original(cls, item, call)\n\n\n"
            f"TestReport.from_item_and_call = classmethod(forged)\n{WRONG}"
        ),
    ),
    Attack(
        name="replaced AssertionError",
        core=(
            "import builtins\n\n\nclass Quiet(BaseException):\n"
            "    def __new__(cls, *_):\n        import os\n\n        os._exit(0)\n\n\n"
            f"builtins.AssertionError = Quiet\n{WRONG}"
        ),
    ),
    Attack(
        name="replaced len",
        core=(
            "import builtins\n\nbuiltins.len = lambda it, size=len: size(it) or 3\n\n\n"
            "def value():\n    return 42\n\n\ndef rows():\n    return []\n"
        ),
    ),
    Attack(
        name="unsigned records on all descriptors",
        core=(
            "import os\n\nfor descriptor in range(3, 64):\n    try:\n"
            f"        os.write(descriptor,\n{RECORDS}        )\n"
            "    except OSError:\n        pass\nos._exit(0)\n"
        ),
    ),
    Attack(
        name="garbage on all descriptors",
        core=(
            "import os\n\nfor descriptor in range(64):\n    try:\n"
            "        os.write(descriptor, b'\\xff{}\\n' * 100)\n"
            f"    except OSError:\n        pass\n{WRONG}"
        ),
        wins_naively=False,
    ),
    Attack(
        name="closes all descriptors",
        core="import os\n\nos.closerange(0, 256)\nos._exit(0)\n",
    ),
    Attack(
        name="leaves a process behind",
        core=(
            "import os\nimport time\n\nif os.fork() == 0:\n    time.sleep(1)\n    os._exit(0)\n"
            f"{WRONG}"
        ),
        wins_naively=False,
    ),
    Attack(
        name="forks, and both go on",
        core=f"import os\n\nos.fork()\n{WRONG}",
        wins_naively=False,
    ),
    Attack(
        name="forks, and the parent leaves",
        core=f"import os\n\nif os.fork():\n    os._exit(0)\n{WRONG}",
    ),
    Attack(
        name="plants results",
        files={
            "result.json": '{"success": "pass"}',
            "junit.xml": '<testsuite tests="1" failures="0"/>',
            "audit.json": '{"mutation_score": 1.0}',
        },
        wins_naively=False,
    ),
    Attack(
        name="sets options for whoever runs pytest next",
        core=(
            "import os\n\n"
            "os.environ['PYTEST_ADDOPTS'] = '--co'\nos.environ['NODE_OPTIONS'] = '-r evil'\n"
            f"{WRONG}"
        ),
        wins_naively=False,
    ),
)

OPEN = (
    Attack(
        name="patched class methods of `TestReport`",
        core=(
            "from _pytest.reports import TestReport\n\n"
            "original = TestReport.__dict__['from_item_and_call']\n\n\n"
            "def forged(cls, item, call):\n"
            "    if call.when == 'call':\n"
            "        call.excinfo = None\n"
            "        TestReport.from_item_and_call = original\n"
            "    return original.__func__(cls, item, call)\n\n\n"
            f"TestReport.from_item_and_call = classmethod(forged)\n{WRONG}"
        ),
    ),
    Attack(
        name="`pluginmanager.register` through a frame walk",
        core=(
            "import sys\n\nimport pytest\n\n\nclass Passes:\n"
            "    @pytest.hookimpl(tryfirst=True)\n"
            "    def pytest_pyfunc_call(self, pyfuncitem):\n        return True\n\n\n"
            "frame = sys._getframe()\nwhile frame:\n"
            "    for local in list(frame.f_locals.values()):\n"
            "        manager = getattr(getattr(local, 'config', None), 'pluginmanager', None)\n"
            "        if manager is not None and not manager.has_plugin('passes'):\n"
            "            manager.register(Passes(), 'passes')\n"
            f"    frame = frame.f_back\n{WRONG}"
        ),
    ),
    Attack(
        name="finding the sender through `gc`",
        core=(
            "import gc\nimport os\n\nfor thing in gc.get_objects():\n"
            "    if getattr(thing, '__qualname__', '') == '_sender.<locals>.send':\n"
            "        thing('collected', ids=['test_values'])\n"
            "        thing('outcome', id='test_values', outcome='passed', when='call')\n"
            "        thing('end', ran=1, exitstatus=0, changed=[])\n"
            f"        os._exit(0)\nos._exit(0)\n{WRONG}"
        ),
    ),
    Attack(
        name="objects that equal everything",
        core=(
            "class Any:\n"
            "    def __eq__(self, _):\n        return True\n\n"
            "    def __len__(self):\n        return 3\n\n\n"
            "value = rows = Any\n"
        ),
    ),
)
"""Named as in docs/security.md: they pass in the process of a check, and in no other form."""
