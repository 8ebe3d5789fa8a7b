"""Is to hand out numbers, as the task says; so far it refuses every request."""

from __future__ import annotations

import json
import sys

for _line in sys.stdin:
    print(json.dumps({"ok": False}), flush=True)
