"""A durable key-value service: a JSON request per line in, a JSON reply per line out.

It is started with the path of its database, which it makes when there is none.
"""

from __future__ import annotations

import json
import sqlite3
import sys

TABLE = "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
FIELDS: dict[str, set[str]] = {
    "get": set(),
    "put": {"value"},
    "delete": set(),
    "cas": {"expected", "value"},
}
"""What each operation needs beside a key."""
INVALID = {"ok": False, "error": "invalid_request"}


def canonical(value: object) -> str:
    """Return the one spelling of a JSON value, in which true, 1 and 1.0 differ."""
    return json.dumps(value, sort_keys=True)


def opened(path: str) -> sqlite3.Connection:
    """Return the database, set to reach the disk with every commit."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous = FULL")
    database.execute(TABLE)
    return database


def read(database: sqlite3.Connection, key: str) -> str | None:
    """Return the spelling of a key's value, or None when it has none."""
    # Spelt in ASCII, a key may hold any character that JSON can name.
    row = database.execute("SELECT value FROM entries WHERE key = ?", (canonical(key),)).fetchone()
    return None if row is None else str(row[0])


def put(database: sqlite3.Connection, key: str, value: object) -> None:
    """Set a key's value."""
    entry = (canonical(key), canonical(value))
    database.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", entry)


def delete(database: sqlite3.Connection, key: str) -> None:
    """Remove a key, if it is there."""
    database.execute("DELETE FROM entries WHERE key = ?", (canonical(key),))


def swap(database: sqlite3.Connection, key: str, expected: object, value: object) -> bool:
    """Set a key's value if it has the expected one; return whether it did."""
    current = read(database, key)
    swapped = current == canonical(expected)
    if swapped:
        put(database, key, value)
    return swapped


def is_write(operation: object) -> bool:
    """Whether an operation may stand in a batch."""
    match operation:
        case {"op": "put" | "delete"}:
            return is_valid(operation)
    return False


def is_valid(request: object) -> bool:
    """Whether a request keeps the protocol; fields that nobody asked for do no harm."""
    match request:
        case {"op": "batch", "operations": list(operations)}:
            return all(map(is_write, operations))
        case {"op": str(op), "key": key, **others} if op in FIELDS:
            return isinstance(key, str) and others.keys() >= FIELDS[op]
    return False


def write(database: sqlite3.Connection, operation: object) -> None:
    """Apply a valid put or delete."""
    match operation:
        case {"op": "put", "key": key, "value": value}:
            put(database, key, value)
        case {"op": "delete", "key": key}:
            delete(database, key)


def answer(database: sqlite3.Connection, request: object) -> dict[str, object]:
    """Apply a request and return its reply; an invalid one changes nothing."""
    if not is_valid(request):
        return INVALID
    match request:
        case {"op": "get", "key": key}:
            found = read(database, key)
            if found is None:
                return {"ok": True, "found": False}
            return {"ok": True, "found": True, "value": json.loads(found)}
        case {"op": "cas", "key": key, "expected": expected, "value": value}:
            return {"ok": True, "swapped": swap(database, key, expected, value)}
        case {"op": "batch", "operations": operations}:
            for operation in operations:
                write(database, operation)
        case _:
            write(database, request)
    return {"ok": True}


def parsed(line: str) -> object:
    """Return the request of a line; what is no JSON is no valid request either."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def serve(database: sqlite3.Connection) -> None:
    """Answer requests until the input ends; what is acknowledged is on the disk."""
    for line in sys.stdin:
        reply = answer(database, parsed(line))
        # All that a request writes is one transaction, and a reply is a promise to keep it.
        database.commit()
        print(json.dumps(reply), flush=True)
    database.close()


if __name__ == "__main__":
    serve(opened(sys.argv[1]))
