"""The declared faults of durable-kv, each as edits of the reference in every language."""

from __future__ import annotations

from pytest_evalarc.packs.controls import Fault

_PYTHON_SWAPS = "swapped = current == canonical(expected)"
_PYTHON_SAVES = '        self._journal.write(f"{json.dumps(operations)}\\n")\n'
_JAVASCRIPT_SWAPS = "const swapped = isDeepStrictEqual(current, expected);"
_JAVASCRIPT_SAVES = "    save(this.#file, entries);\n"

FAULTS = (
    Fault(
        name="ack-without-work",
        target="basic",
        description="Acknowledges every request and does nothing.",
        edits={
            "python": [("json.dumps(answer(store, parsed(line)))", 'json.dumps({"ok": True})')],
            "javascript": [
                ("const reply = answer(store, parsed(line));", "const reply = { ok: true };")
            ],
        },
    ),
    Fault(
        name="memory-only",
        target="persistence",
        description="Keeps everything in memory, so that a restart forgets it.",
        edits={
            "python": [(_PYTHON_SAVES, "")],
            "javascript": [(_JAVASCRIPT_SAVES, "")],
        },
    ),
    Fault(
        name="partial-batch",
        target="transactions",
        description="Applies a batch up to its first invalid operation, and then refuses it.",
        edits={
            "python": [
                ("return all(map(is_write, operations))", "return True"),
                (
                    "            store.write(operations)\n",
                    "            for operation in operations:\n"
                    "                if not is_write(operation):\n"
                    "                    return INVALID\n"
                    "                store.write([operation])\n",
                ),
            ],
            "javascript": [
                (" && operations.every(isWrite)", ""),
                (
                    "      store.write(request.operations);\n",
                    "      for (const operation of request.operations) {\n"
                    "        if (!isWrite(operation)) return INVALID;\n"
                    "        store.write([operation]);\n"
                    "      }\n",
                ),
            ],
        },
    ),
    Fault(
        name="cas-always-wins",
        target="compare_swap",
        description="Swaps whatever value is there.",
        edits={
            "python": [(_PYTHON_SWAPS, "swapped = True")],
            "javascript": [(_JAVASCRIPT_SWAPS, "const swapped = true;")],
        },
    ),
    Fault(
        name="boolean-equals-one",
        target="compare_swap",
        description="Compares by the language's equality, in which true is 1.",
        edits={
            "python": [
                (
                    _PYTHON_SWAPS,
                    "swapped = current is not None and json.loads(current) == expected",
                )
            ],
            "javascript": [
                (
                    _JAVASCRIPT_SWAPS,
                    "const plain = (value) => JSON.parse(JSON.stringify(value));\n"
                    "    const swapped =\n"
                    "      current !== undefined &&\n"
                    "      (isDeepStrictEqual(current, expected) ||"
                    " plain(current) == plain(expected));",
                )
            ],
        },
    ),
    Fault(
        name="delete-noop",
        target="basic",
        description="Acknowledges a delete and keeps the entry.",
        edits={
            "python": [("self._entries.pop(key, None)", "pass")],
            "javascript": [("      else entries.delete(key);\n", "")],
        },
    ),
    Fault(
        name="accept-nonstring-keys",
        target="validation",
        description="Takes a key of any type.",
        edits={
            "python": [("isinstance(key, str) and ", "")],
            "javascript": [('typeof key === "string" && ', "")],
        },
    ),
    Fault(
        name="commit-on-exit",
        target="crash_recovery",
        description="Commits at a clean exit alone, so that a kill forgets what was acknowledged.",
        edits={
            "python": [("        self._journal.flush()\n", "")],
            "javascript": [
                (_JAVASCRIPT_SAVES, ""),
                (
                    "    this.#entries = load(file);\n",
                    "    this.#entries = load(file);\n"
                    '    process.on("exit", () => save(file, this.#entries));\n',
                ),
            ],
        },
    ),
)
