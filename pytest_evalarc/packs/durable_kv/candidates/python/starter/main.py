"""A durable key-value service, to be written: it answers, and does nothing yet."""

from __future__ import annotations

import json
import sys

for _line in sys.stdin:
    print(json.dumps({"ok": False, "error": "not_implemented"}), flush=True)
