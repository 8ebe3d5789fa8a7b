"""One holder at a time."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_evalarc.files.lock import GivenUp, locked, locked_if_free


def test_threads_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    """Two items of one worker must not run the same trial side by side."""
    inside = threading.Event()
    release = threading.Event()
    order = []

    def holder() -> None:
        with locked(tmp_path / "lock"):
            inside.set()
            release.wait()
            order.append("holder")

    thread = threading.Thread(target=holder)
    thread.start()
    inside.wait()
    releaser = threading.Timer(0.05, release.set)
    releaser.start()
    with locked(tmp_path / "lock"):
        order.append("waiter")
    thread.join()
    releaser.join()

    assert order == ["holder", "waiter"]


def test_a_lock_is_freed_by_an_error_inside(tmp_path: Path) -> None:
    """A failed trial must not block all later ones."""
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock"):
        raise ZeroDivisionError

    with locked(tmp_path / "lock"):
        pass


@pytest.mark.slow
def test_the_death_of_its_holder_frees_a_lock(tmp_path: Path) -> None:
    """A worker that is killed cannot tidy up, and the next one must not wait for ever."""
    code = (
        "import sys, time, pathlib\n"
        "from pytest_evalarc.files.lock import GivenUp, locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)\n"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "lock")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
        holder.wait()

    with locked(tmp_path / "lock"):
        pass


def test_a_waiter_can_give_up(tmp_path: Path) -> None:
    """Whoever has no more time must not wait for a trial that another process runs."""
    given_up = threading.Event()
    given_up.set()

    def wait() -> None:
        with locked(tmp_path / "lock", given_up=given_up):
            raise AssertionError("it is held")

    with locked(tmp_path / "lock"), ThreadPoolExecutor(1) as pool:
        waiter = pool.submit(wait)
        with pytest.raises(GivenUp):
            waiter.result()

    with locked(tmp_path / "lock", given_up=given_up):
        pass


def test_a_lock_may_be_tried(tmp_path: Path) -> None:
    """Whoever has another one to try does not wait for this one."""
    path = tmp_path / "lock"

    def is_free() -> bool:
        with locked_if_free(path) as is_held:
            return is_held

    with locked_if_free(path) as first, ThreadPoolExecutor(1) as pool:
        meanwhile = (is_free(), pool.submit(is_free).result())

    assert (first, *meanwhile, is_free()) == (True, False, False, True)
