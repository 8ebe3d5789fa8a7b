"""A harness as people write one: it runs an agent's script, keeps what it left, and believes it.

Called as `python unprotected.py SCRIPT PROJECT KEPT LOG VERDICT`; it imports nothing of ours.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path


def main(script: Path, project: Path, kept: Path, log: Path, verdict: Path) -> None:
    """Run a session, and write down what came of it."""
    done = subprocess.run(
        ["sh", script],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # Whoever starts a shell by hand leaves to it what is open.
        close_fds=False,
        check=False,
    )
    log.write_text(done.stdout.decode("utf-8"), "utf-8")
    shutil.copytree(project, kept)
    names = sorted(str(path.relative_to(kept)) for path in kept.rglob("*"))
    (kept / "names.json").write_text(json.dumps(names, ensure_ascii=False), "utf-8")
    planted = project / "result.json"
    told = json.loads(planted.read_text("utf-8")) if planted.exists() else {}
    success = told.get("success", done.returncode == 0)
    verdict.write_text(json.dumps({"success": success}), "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
