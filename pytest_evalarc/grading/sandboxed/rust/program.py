"""How the programs of tests are run: their output goes to a file, and its end is kept."""

import os
import subprocess
import sys
import tempfile

OUTPUT_BYTES = 1 << 18


def run_tests(program, *, stdin: bytes, env, cwd):
    """Return the status of a test program, and the end of what it said.

    A file rather than a pipe: a background process that keeps it open holds nobody up.
    """
    with tempfile.TemporaryFile() as output:
        status = subprocess.run(
            [program], input=stdin, stdout=output, env={**os.environ, **env}, cwd=cwd, check=False
        ).returncode
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - OUTPUT_BYTES))
        said = output.read().decode("utf-8", "replace")
    sys.stderr.write(said)
    return status, said
