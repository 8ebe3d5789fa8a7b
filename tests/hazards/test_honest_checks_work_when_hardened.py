"""What keeps attacks out keeps honest checks from working, and everything fails.

An empty `PYTHONHOME` is not an unset one, a scrubbed PATH has no interpreter, HOME is no folder: a
check that starts a program then fails for every submission. benchflow-ai/benchflow#130 and #144.
"""

from __future__ import annotations

import pytest

from tests.grading.small_task import RIGHT
from tests.needs import needs_bwrap

pytestmark = [needs_bwrap, pytest.mark.slow]

HONEST = {
    "starts its own interpreter": (
        "import subprocess, sys\n\n"
        "def test_it():\n    subprocess.run([sys.executable, '-c', '1'], check=True)\n"
    ),
    "starts python by its name": (
        "import subprocess\n\n"
        "def test_it():\n    subprocess.run(['python3', '-c', 'import json'], check=True)\n"
    ),
    "starts a shell with a pipe": (
        "import subprocess\n\n"
        "def test_it():\n    subprocess.run('ls / | head -1', shell=True, check=True)\n"
    ),
    "writes into its home": (
        "import pathlib\n\ndef test_it():\n    (pathlib.Path.home() / 'x').write_text('1')\n"
    ),
    "finds no variable that is blank": (
        "import os\n\ndef test_it():\n    assert '' not in os.environ.values(), dict(os.environ)\n"
    ),
    "asks who it is": (
        "import getpass, os, pwd\n\n"
        "def test_it():\n    assert getpass.getuser() and pwd.getpwuid(os.getuid())\n"
    ),
    "speaks UTF-8": (
        "import locale, sys\n\n"
        "def test_it():\n"
        "    assert sys.stdout.encoding == sys.getfilesystemencoding() == 'utf-8'\n"
        "    assert locale.getpreferredencoding() == 'UTF-8'\n"
    ),
    "has children that speak UTF-8": (
        "import subprocess, sys\n\n"
        "def test_it():\n"
        "    code = 'print(chr(233) + chr(0x1d11e))'\n"
        "    said = subprocess.run([sys.executable, '-c', code], capture_output=True, check=True)\n"
        "    assert said.stdout.decode() == '\\u00e9\\U0001d11e\\n'\n"
    ),
    "makes temporary files": (
        "import tempfile\n\n"
        "def test_it():\n    assert tempfile.mkdtemp() and tempfile.TemporaryFile()\n"
    ),
    "talks to itself over the network": (
        "import socket\n\n"
        "def test_it():\n"
        "    with socket.create_server(('127.0.0.1', 0)) as server:\n"
        "        with socket.create_connection(server.getsockname()):\n            pass\n"
    ),
    "uses several processes": (
        "from concurrent.futures import ProcessPoolExecutor\n\n"
        "def test_it():\n"
        "    with ProcessPoolExecutor(2) as pool:\n"
        "        assert list(pool.map(abs, [-1, 2])) == [1, 2]\n"
    ),
    "imports what comes with Python": (
        "import asyncio, bz2, ctypes, curses, dbm, decimal, lzma, sqlite3, ssl, uuid, zoneinfo\n\n"
        "def test_it():\n    assert asyncio.run(asyncio.sleep(0, 1)) == 1\n"
    ),
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_a_check_does_what_checks_do(bench, small_task, source: str) -> None:
    """Under the very conditions in which every submission is judged."""
    small_task.only_check(source)
    task = small_task.load()

    row = bench.check(task, {"app/core.py": RIGHT}, "only")

    assert (row.status, row.detail) == ("passed", "")


@pytest.mark.parametrize(
    "name",
    ["PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "LD_PRELOAD"],
)
@pytest.mark.parametrize("value", ["", "/nowhere"])
def test_a_variable_of_the_user_reaches_no_check(
    bench, small_task, monkeypatch, name: str, value: str
) -> None:
    """Neither what it says nor that it is there: a blank one has a meaning of its own."""
    monkeypatch.setenv(name, value)
    small_task.only_check(
        "import os, subprocess, sys\n\ndef test_it():\n"
        f"    assert {name!r} not in os.environ\n"
        "    subprocess.run([sys.executable, '-c', '1'], check=True)\n"
    )
    task = small_task.load()

    row = bench.check(task, {"app/core.py": RIGHT}, "only")

    assert (row.status, row.detail) == ("passed", "")
