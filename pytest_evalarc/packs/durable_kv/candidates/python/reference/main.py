"""A durable key-value service: a JSON request per line in, a JSON reply per line out."""

from __future__ import annotations

import json
import sqlite3
import sys

TABLE = "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value TEXT NOT NULL)"


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


def compare_and_swap(
    database: sqlite3.Connection, key: str, expected: object, value: object
) -> bool:
    """Set a key's value if it has the expected one; return whether it did."""
    current = read(database, key)
    swapped = current == canonical(expected)
    if swapped:
        put(database, key, value)
    return swapped


def is_write(operation: object) -> bool:
    """Whether an operation may stand in a batch."""
    match operation:
        case {"op": "put", "key": str(), "value": _} | {"op": "delete", "key": str()}:
            return True
    return False


def write(database: sqlite3.Connection, operation: object) -> None:
    """Apply one operation that may stand in a batch."""
    match operation:
        case {"op": "put", "key": str(key), "value": value}:
            put(database, key, value)
        case {"op": "delete", "key": str(key)}:
            delete(database, key)


def answer(database: sqlite3.Connection, request: object) -> dict[str, object]:
    """Apply a request and return its reply; an invalid one changes nothing."""
    match request:
        case {"op": "get", "key": str(key)}:
            found = read(database, key)
            if found is None:
                return {"ok": True, "found": False}
            return {"ok": True, "found": True, "value": json.loads(found)}
        case {"op": "cas", "key": str(key), "expected": expected, "value": value}:
            return {"ok": True, "swapped": compare_and_swap(database, key, expected, value)}
        case {"op": "batch", "operations": list(operations)} if all(map(is_write, operations)):
            for operation in operations:
                write(database, operation)
            return {"ok": True}
    if is_write(request):
        write(database, request)
        return {"ok": True}
    return {"ok": False, "error": "invalid_request"}


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
        database.commit()
        print(json.dumps(reply), flush=True)
    database.close()


if __name__ == "__main__":
    serve(opened(sys.argv[1]))
