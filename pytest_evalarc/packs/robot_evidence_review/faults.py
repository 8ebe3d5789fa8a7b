"""The declared faults of robot-evidence-review, as edits of the reference in every language."""

from __future__ import annotations

from pytest_evalarc.packs.controls import Fault

FAULTS = (
    Fault(
        name="assume-meters",
        target="coordinates",
        description="Takes every length for meters, whatever unit the sensor has.",
        edits={
            "python": [('scale = mapping["meters_per_unit"]', "scale = 1.0")],
            "javascript": [("scale = mapping.meters_per_unit;", "scale = 1;")],
        },
    ),
    Fault(
        name="ignore-frame-origin",
        target="coordinates",
        description="Turns positions into world axes, and leaves the sensor at the world's origin.",
        edits={
            "python": [('origin = mapping["origin_m"]', "origin = [0.0, 0.0, 0.0]")],
            "javascript": [("origin = mapping.origin_m;", "origin = [0, 0, 0];")],
        },
    ),
    Fault(
        name="ignore-clock-units",
        target="clock",
        description="Takes the clock's ticks for seconds.",
        edits={
            "python": [("return (tick - origin) * seconds_per_tick", "return tick")],
            "javascript": [
                ("return (tick - clock.origin_tick) * clock.seconds_per_tick;", "return tick;")
            ],
        },
    ),
    Fault(
        name="assume-complete",
        target="completeness",
        description="Never reports a missing frame.",
        edits={
            "python": [
                (
                    'missing = sorted(set(metadata["expected_frames"]) - by_frame.keys())',
                    "missing = []",
                )
            ],
            "javascript": [
                (
                    "missing = metadata.expected_frames.filter((frame) => !seen.has(frame));",
                    "missing = [];",
                )
            ],
        },
    ),
    Fault(
        name="last-frame-is-peak",
        target="metrics",
        description="Takes the last frame for the highest one.",
        edits={
            "python": [("peak = max(rows, key=height)", "peak = rows[-1]")],
            "javascript": [("peak = highest(rows);", "peak = rows[rows.length - 1];")],
        },
    ),
    Fault(
        name="invent-source",
        target="provenance",
        description="Makes up the digest of the recording.",
        edits={
            "python": [('recording["source"]["sha256"]', '"0" * 64')],
            "javascript": [("source_sha256: source.sha256,", 'source_sha256: "0".repeat(64),')],
        },
    ),
)
