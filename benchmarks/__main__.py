"""Every figure in one run, each beside its bar and its peer: `python benchmarks`."""

from __future__ import annotations

import sys

from command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
