"""A support agent, to be written: it reads what is asked, and finishes without doing any of it."""

from __future__ import annotations

import json
import sys

start = json.loads(sys.stdin.readline())
print(json.dumps({"finish": True}), flush=True)
