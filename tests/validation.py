"""The validator of JSON Schemas, without formats of strings, which nothing here has it check."""

from __future__ import annotations

import sys

# For one of them it compiles the grammar of all addresses as it is imported, which takes longer
# than every validation here; what cannot be imported it does without.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

import jsonschema  # noqa: E402

__all__ = ["jsonschema"]
