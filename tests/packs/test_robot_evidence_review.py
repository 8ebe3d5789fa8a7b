"""robot-evidence-review: its flights, its cases, its oracle, and what they catch."""

from __future__ import annotations

import copy
import json
import math
import random
import types
from functools import cache, partial
from itertools import product
from pathlib import Path

import pytest

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.grading.grade import grade
from pytest_evalarc.grading.lab import PackLab
from pytest_evalarc.grading.pack import CandidateError, Case
from pytest_evalarc.grading.submission import read_submission
from pytest_evalarc.grading.threads import CaseThreads
from pytest_evalarc.grading.toolchains.node import Node
from pytest_evalarc.grading.toolchains.python import Python
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.model.audit import AuditPlan, PlannedMutant
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.grading import CheckRow, Grading
from pytest_evalarc.model.task import PackRef, Task, TaskBrief
from pytest_evalarc.packs.robot_evidence_review.cases import (
    QUERY_FRAMES,
    VIEWS,
    content,
    decisive_frames,
)
from pytest_evalarc.packs.robot_evidence_review.faults import FAULTS
from pytest_evalarc.packs.robot_evidence_review.oracle import (
    FIELDS,
    agrees,
    expected_report,
    judge,
)
from pytest_evalarc.packs.robot_evidence_review.pack import REPLY_SHOWN, RobotEvidenceReview
from pytest_evalarc.packs.robot_evidence_review.recordings import FPS, RECORDINGS, highest
from pytest_evalarc.runs.once import once
from tests.needs import needs, needs_bwrap
from tests.sharing import run_folder

PACK = RobotEvidenceReview()
CASES = tuple(PACK.info.cases)
MUTANTS = tuple(mutant.name for mutant in PACK.info.mutants)
WEIGHTS = PACK.info.weights
LANGUAGES = tuple(PACK.info.languages)
USUAL_SEEDS = (17, 41, 97)
OTHER_SEEDS = (2, 7, 19)
SEEDS = (*USUAL_SEEDS, *OTHER_SEEDS)
SCALED = ("millimeters-sensor-frame", "centimeters-offset-clock")

MARGINS = {
    "assume-meters": ("coordinates", SCALED, 2, 0.75),
    "ignore-frame-origin": ("coordinates", SCALED, 2, 0.75),
    "ignore-clock-units": ("clock", SCALED, 2, 0.8),
    "assume-complete": ("completeness", ("incomplete-recording",), 1, 0.9625),
    "last-frame-is-peak": ("metrics", CASES, 4, 0.75),
    "invent-source": ("provenance", CASES, 4, 0.9),
}
"""By fault: its target, the cases that see it there, how many see it anywhere, and its score."""

flights = pytest.mark.parametrize("recording", RECORDINGS.values(), ids=RECORDINGS)


# The recordings.


def test_every_flight_is_what_it_was_when_results_were_made():
    """A digest stands in every request and report, so a last bit that moves is a new version."""
    assert {name: recording.sha256 for name, recording in RECORDINGS.items()} == {
        "earth-coarse": "982bea4a21cc1b582711581a8db8f70354484bbf17a45c348dabcce4d5acf4e3",
        "earth-explicit": "98bff6e1e77a3edd9bc0e5a99fc39f7acd0e39c4b258e3b7306cc90a4f1514df",
        "mars-level-peak": "f723001b525783a27e5e14323262d4c4295205239c757e6a68aa321e98d44f07",
        "tilted-switching": "a0fa604512f443a913c7a37f6b3edc02a32bfdd8d6586714c627c98d6782b0f7",
        "tilted-level-peak": "32470dbdfbbb8c83f9044e65614213d336dc55e8eec5320a114c7145c35215e6",
        "moon-fine": "5bb3fae17b217a5cc5cb07a3e1e09c03d3c4856a3796ae71426b783746827f2e",
    }


@flights
def test_a_flight_has_sixty_one_frames_over_two_seconds(recording):
    """They are numbered as they are timed, and velocity is exact at each of them."""
    scene = recording.scene
    speeds = zip(scene.velocity0_m_s, scene.gravity_m_s2, strict=True)
    last = recording.frames[-1]

    assert [frame.number for frame in recording.frames] == list(range(61))
    assert [frame.time_s for frame in recording.frames] == [n / 30 for n in range(61)]
    assert last.velocity_m_s == pytest.approx([v + g * 2.0 for v, g in speeds])


@flights
def test_a_flight_errs_by_what_its_euler_steps_must_leave(recording):
    """Half of g h² per step, forwards or backwards, is the closed form of what is simulated."""
    scene = recording.scene
    half_step_m = math.hypot(*scene.gravity_m_s2) / (FPS * scene.substeps) ** 2 / 2
    explicit = [scene.substeps * min(n, scene.explicit_until_frame) for n in range(61)]
    wanted = [
        abs(n * scene.substeps - 2 * before) * half_step_m for n, before in enumerate(explicit)
    ]

    assert [recording.error_m(f) for f in recording.frames] == pytest.approx(wanted, abs=1e-12)


def test_the_six_flights_are_six_different_ones():
    """Two that only differ in name would make two seeds one."""
    scenes = [recording.scene for recording in RECORDINGS.values()]
    shapes = {tuple(f.position_m for f in recording.frames) for recording in RECORDINGS.values()}

    assert len(shapes) == len(scenes) == 6
    assert len({scene.position0_m for scene in scenes}) == 6
    assert len({scene.velocity0_m_s for scene in scenes}) == 6
    assert {scene.substeps for scene in scenes} == {1, 2, 4, 8}
    assert len({scene.gravity_m_s2 for scene in scenes}) == 5


@flights
def test_no_component_of_a_flight_can_be_taken_for_another(recording):
    """Where x, y and z are equal or zero, wrong axes and signs would go unseen."""
    for number in QUERY_FRAMES:
        frame = recording.frames[number]
        sizes = [abs(value) for value in frame.position_m]
        assert min(abs(a - b) for a, b in zip(sizes, sizes[1:] + sizes[:1], strict=True)) > 1e-3
        assert abs(frame.velocity_m_s[0]) != abs(frame.velocity_m_s[1]) != 0.0
    assert all(frame.position_m[1] != 0.0 for frame in recording.frames)


@flights
def test_a_peak_is_equal_to_the_last_bit_or_clear(recording):
    """What differs by rounding alone would be decided by how a candidate rounds."""
    lost = decisive_frames(recording)
    for omitted in ((), lost):
        left = [frame for frame in recording.frames if frame.number not in omitted]
        peak = highest(tuple(left)).position_m[2]
        behind = [peak - frame.position_m[2] for frame in left]
        assert all(gap == 0.0 or gap > 1e-4 for gap in behind)


def test_some_peaks_are_level_and_some_worst_frames_are_inside():
    """Only then is the lowest of equal frames, and the worst of all frames, more than a word."""
    level, inside = set(), set()
    for name, recording in RECORDINGS.items():
        peak = highest(recording.frames)
        heights = [frame.position_m[2] for frame in recording.frames]
        if heights.count(peak.position_m[2]) > 1:
            level.add((name, peak.number, 61 - 1 - heights[::-1].index(peak.position_m[2])))
        if max(recording.frames, key=recording.error_m).number < 60:
            inside.add(name)

    assert level == {("mars-level-peak", 29, 30), ("tilted-level-peak", 27, 28)}
    assert inside == {"tilted-switching", "tilted-level-peak"}


@flights
def test_a_recording_says_that_it_was_simulated_here(recording):
    """Nobody may take it for something that a robot did."""
    document = recording.document()

    assert document["kind"] == "simulated"
    assert "integrated with Euler steps by pytest-evalarc" in document["method"]
    assert "No robot" in document["method"]


# The cases.


def request_of(case):
    return case.content["request"]


def test_the_same_seed_gives_the_same_cases():
    """Results of a seed are compared across runs and machines."""
    assert PACK.cases(17) == PACK.cases(17)
    assert [(case.seed, case.id) for case in PACK.cases(17)] == [(17, name) for name in CASES]


def test_a_seed_varies_the_flight_the_query_and_the_order_of_rows():
    """One that varies nothing would be the same case again."""
    seeds = range(250)
    first = [PACK.cases(seed)[0] for seed in seeds]
    orders = {
        tuple(row["frame"] for row in request_of(case)["recording"]["observations"])
        for seed in seeds
        for case in PACK.cases(seed)
    }

    assert {case.content["recording"] for case in first} == set(RECORDINGS)
    assert {case.content["query_frame"] for case in first} == set(range(18, 42))
    assert len(orders) == len(seeds) * len(CASES)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_cases_of_a_seed_share_flight_and_query(seed):
    """They then differ in their view alone, which is what a finding is put down to."""
    cases = PACK.cases(seed)

    assert len({case.content["recording"] for case in cases}) == 1
    assert len({case.content["query_frame"] for case in cases}) == 1


def test_the_seeds_that_are_tested_here_see_every_flight():
    """A margin that holds for some flights alone would be an accident of the seed."""
    assert {PACK.cases(seed)[0].content["recording"] for seed in SEEDS} == set(RECORDINGS)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_incomplete_recording_lacks_frames_and_they_decide(seed):
    """Without the peak and the worst frame, the metrics are others than those of the flight."""
    *complete, incomplete = PACK.cases(seed)
    recording = RECORDINGS[incomplete.content["recording"]]
    lost = incomplete.content["omitted_frames"]
    whole = expected_report(recording, query_frame=20, omitted_frames=())
    left = expected_report(recording, query_frame=20, omitted_frames=lost)
    seen = {row["frame"] for row in request_of(incomplete)["recording"]["observations"]}

    assert [case.content["omitted_frames"] for case in complete] == [[], [], []]
    assert all(len(request_of(c)["recording"]["observations"]) == 61 for c in complete)
    assert len(request_of(incomplete)["recording"]["observations"]) == 59
    assert set(lost) == set(range(61)) - seen
    assert incomplete.content["query_frame"] in seen
    assert left["peak_frame"] != whole["peak_frame"]
    assert left["max_position_error_m"] < whole["max_position_error_m"] - 1e-4


@pytest.mark.parametrize(("seed", "index"), list(product(SEEDS, range(4))))
def test_what_the_task_says_of_the_conversion_leads_back_to_the_recording(seed, index):
    """The prompt's own formulas, written out once more, are all that a candidate has."""
    case = PACK.cases(seed)[index]
    frames = RECORDINGS[case.content["recording"]].frames
    metadata = request_of(case)["recording"]["metadata"]
    world, clock = metadata["world_from_sensor"], metadata["clock"]
    axes, signs, unit = world["axes"], world["signs"], world["meters_per_unit"]

    assert metadata["expected_frames"] == list(range(61))
    for row in request_of(case)["recording"]["observations"]:
        frame = frames[row["frame"]]
        velocity = [row["velocity"][axes[j]] * signs[j] * unit for j in range(3)]
        position = [
            row["position"][axes[j]] * signs[j] * unit + world["origin_m"][j] for j in range(3)
        ]
        time = (row["tick"] - clock["origin_tick"]) * clock["seconds_per_tick"]
        assert velocity == pytest.approx(frame.velocity_m_s, abs=1e-11)
        assert position == pytest.approx(frame.position_m, abs=1e-11)
        assert time == pytest.approx(frame.time_s, abs=1e-10)


def test_units_axes_and_clocks_are_those_that_are_declared():
    """A milder view would still pass, and would catch less."""
    told = {case.id: request_of(case)["recording"]["metadata"] for case in PACK.cases(17)}
    plain = (
        {"axes": [0, 1, 2], "signs": [1, 1, 1], "origin_m": [0.0] * 3, "meters_per_unit": 1.0},
        {"origin_tick": 0, "seconds_per_tick": 1.0},
    )

    assert {name: (m["world_from_sensor"], m["clock"]) for name, m in told.items()} == {
        "world-meters": plain,
        "millimeters-sensor-frame": (
            {
                "axes": [2, 0, 1],
                "signs": [-1, 1, -1],
                "origin_m": [1.25, -0.75, 2.5],
                "meters_per_unit": 0.001,
            },
            {"origin_tick": 1_000_000, "seconds_per_tick": 0.001},
        ),
        "centimeters-offset-clock": (
            {
                "axes": [1, 2, 0],
                "signs": [1, -1, -1],
                "origin_m": [-1.5, 0.4, 0.75],
                "meters_per_unit": 0.01,
            },
            {"origin_tick": 28_800_000, "seconds_per_tick": 0.001},
        ),
        "incomplete-recording": plain,
    }


def test_every_request_is_far_within_its_bound():
    """The bound is a promise to whoever writes a candidate."""
    sizes = [
        len(json.dumps(request_of(case))) + 1 for seed in range(60) for case in PACK.cases(seed)
    ]

    assert max(sizes) < 13_000 < PACK.info.request_bytes == 65536


# The oracle.


@pytest.fixture
def right():
    return expected_report(RECORDINGS["mars-level-peak"], query_frame=20, omitted_frames=(60, 29))


def test_the_right_report_follows_from_the_recording():
    """Every verdict rests on it, so it is held against the flight's closed form by hand."""
    report = expected_report(RECORDINGS["mars-level-peak"], query_frame=15, omitted_frames=())

    # z of semi-implicit steps: 2.2 + 3.75 t - 3.75 h² n (n + 1) / 2, with h = 1/30.
    assert report == {
        "source_sha256": RECORDINGS["mars-level-peak"].sha256,
        "frame": 15,
        "time_seconds": 0.5,
        "position_m": pytest.approx([2.95, -1.7, 2.2 + 1.875 - 0.5]),
        "speed_m_s": pytest.approx(math.sqrt(3.1**2 + 2.2**2 + 1.875**2)),
        "max_position_error_m": pytest.approx(3.75 * 2.0 / 30 / 2),
        "peak_frame": 29,
        "peak_height_m": pytest.approx(2.2 + 3.75 - 3.75 / 900 * 465),
        "missing_frames": [],
    }


def test_frames_that_are_not_there_count_for_nothing(right):
    """The lower of two level frames is gone, and so is the worst one."""
    assert right["missing_frames"] == [29, 60]
    assert right["peak_frame"] == 30
    assert right["max_position_error_m"] == pytest.approx(3.75 * 59 / 30 / 30 / 2)


def test_the_right_report_is_right_in_every_dimension(right):
    """It is the positive control of the judgement itself."""
    judgement = judge(copy.deepcopy(right), right)

    assert judgement.verdicts == dict.fromkeys(WEIGHTS, True)
    assert judgement.detail == ""


def test_numbers_may_be_spelt_otherwise_and_be_off_by_the_tolerance(right):
    """Languages print numbers differently, and none converts units without rounding."""
    report = right | {
        "time_seconds": right["time_seconds"] + 0.9e-6,
        "speed_m_s": right["speed_m_s"] * (1 + 0.9e-7),
        "position_m": [value - 0.9e-6 for value in right["position_m"]],
    }

    assert judge(report, right).verdicts == dict.fromkeys(WEIGHTS, True)
    assert agrees(4, 4.0)
    assert agrees(1e6 + 0.09, 1e6)


@pytest.mark.parametrize(
    ("field", "value", "dimension"),
    [
        ("source_sha256", "0" * 64, "provenance"),
        ("source_sha256", None, "provenance"),
        ("source_sha256", RECORDINGS["mars-level-peak"].sha256.upper(), "provenance"),
        ("position_m", [1.0, 2.0, 3.0], "coordinates"),
        ("position_m", [], "coordinates"),
        ("position_m", "right there", "coordinates"),
        ("position_m", None, "coordinates"),
        ("speed_m_s", 4.0, "coordinates"),
        ("speed_m_s", [4.0], "coordinates"),
        ("frame", 21, "clock"),
        ("frame", 20.0, "clock"),
        ("frame", "20", "clock"),
        ("time_seconds", 0.66667, "clock"),
        ("max_position_error_m", 0.125, "metrics"),
        ("peak_frame", 29, "metrics"),
        ("peak_frame", 30.0, "metrics"),
        ("peak_frame", True, "metrics"),
        ("peak_height_m", 4.0, "metrics"),
        ("peak_height_m", {}, "metrics"),
        ("missing_frames", [], "completeness"),
        ("missing_frames", [60, 29], "completeness"),
        ("missing_frames", [29, 60, 60], "completeness"),
        ("missing_frames", [29.0, 60], "completeness"),
        ("missing_frames", [29, "60"], "completeness"),
        ("missing_frames", {"29": 60}, "completeness"),
        ("missing_frames", None, "completeness"),
    ],
)
def test_a_wrong_field_fails_its_own_dimension_and_no_other(right, field, value, dimension):
    """A finding in one dimension must not be caused by a fault in another."""
    judgement = judge(right | {field: value}, right)

    assert judgement.verdicts == dict.fromkeys(WEIGHTS, True) | {dimension: False}
    assert judgement.detail.startswith(f"{field} must be ")


@pytest.mark.parametrize("field", [field for fields in FIELDS.values() for field in fields])
def test_a_missing_field_fails_its_dimension_and_the_protocol(right, field):
    """The rest of such a report is still worth what it says."""
    (dimension,) = [name for name, fields in FIELDS.items() if field in fields]
    report = {name: value for name, value in right.items() if name != field}
    judgement = judge(report, right)

    wrong = {dimension: False, "protocol": False}
    assert judgement.verdicts == dict.fromkeys(WEIGHTS, True) | wrong
    assert judgement.detail == f"{field} is missing"


def test_an_unknown_field_fails_the_protocol_alone(right):
    """A report has nine fields, and a tenth is one that nobody agreed to."""
    judgement = judge(right | {"note": "\ud800"}, right)

    assert judgement.verdicts == dict.fromkeys(WEIGHTS, True) | {"protocol": False}
    assert judgement.detail == 'unknown fields: ["note"]'


@pytest.mark.parametrize(
    "value",
    [True, False, "0.5", None, [0.5], {}, math.nan, math.inf, -math.inf, 10**400, -(10**400)],
)
@pytest.mark.parametrize("expected", [0.0, 0.5, 1.0])
def test_what_is_no_finite_number_is_never_close(value, expected):
    """Python holds True for 1.0, and raises on an integer that no float can hold."""
    assert not agrees(value, expected)


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1], 10**400])
def test_a_frame_is_a_whole_number_and_of_that_type(value):
    """A frame that was computed by rounding is not one that was read."""
    assert agrees(1, 1)
    assert not agrees(value, 1)


def test_every_field_of_a_report_is_judged_once(right):
    """One in no dimension could be anything, one in two would count twice."""
    judged = [field for fields in FIELDS.values() for field in fields]

    assert sorted(judged) == sorted(right)
    assert set(WEIGHTS) == {*FIELDS, "protocol"}
    assert math.fsum(WEIGHTS.values()) == pytest.approx(1.0)


# What a case makes of a candidate.


class Answering:
    """A session whose candidate is a function of the request."""

    def __init__(self, answer, at_end=None):
        self._answer = answer
        self._at_end = at_end
        self.ended = []

    def ask(self, request):
        # Through JSON and back, as everything goes that a process is asked and answers.
        return json.loads(json.dumps(self._answer(json.loads(json.dumps(request)))))

    def end(self, how):
        self.ended.append(how)
        if self._at_end is not None:
            raise self._at_end


@cache
def reviewer(*edits):
    """Return the `review` of the Python reference after some edits of its text."""
    text = PACK.control("reference", "python")["main.py"].decode()
    for find, replacement in edits:
        assert text.count(find) == 1, find
        text = text.replace(find, replacement)
    module = types.ModuleType("candidate")
    exec(text, vars(module))
    return module.review


def report_of(request):
    return {"ok": True, "report": reviewer()(request)}


CASE = PACK.cases(17)[1]
INCOMPLETE = PACK.cases(17)[3]


def verdict(answer, case=CASE, at_end=None):
    return PACK.run(case, lambda: Answering(answer, at_end))


def test_a_right_reply_passes_and_its_exchange_is_kept():
    """A person who reads a report must see what was asked and answered."""
    session = Answering(report_of)
    found = PACK.run(CASE, lambda: session)
    (exchange,) = found.trace

    assert found.verdicts == dict.fromkeys(WEIGHTS, True)
    assert (found.fault, found.detail) == (None, "")
    assert session.ended == ["eof"]
    assert json.loads(exchange["request"]) == request_of(CASE)
    assert json.loads(exchange["response"]) == report_of(request_of(CASE))


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        "ok",
        {},
        {"ok": True},
        {"ok": True, "report": None},
        {"ok": True, "report": []},
        {"ok": False, "report": {}},
        {"ok": 1, "report": {}},
        {"ok": "true", "report": {}},
        {"report": {}},
        {"ok": True, "report": {}, "note": ""},
    ],
)
def test_a_reply_in_no_envelope_is_a_fault_and_nothing_of_it_counts(reply):
    """Who answers in another form has not said what its numbers mean."""
    found = verdict(lambda _: reply)

    assert found.verdicts == dict.fromkeys(WEIGHTS, False)
    assert found.fault.kind == "protocol"
    assert found.detail.startswith('its reply is not {"ok": true, "report":')
    assert json.loads(found.trace[0]["response"]) == reply


def test_an_empty_report_in_its_envelope_is_wrong_and_no_fault():
    """It kept to the form, so its dimensions are judged, and all of them are wrong."""
    found = verdict(lambda _: {"ok": True, "report": {}})

    assert found.verdicts == dict.fromkeys(WEIGHTS, False)
    assert found.fault is None


def test_a_candidate_that_does_not_answer_leaves_the_request_in_the_trace():
    """What it was asked is what one needs to find out why."""

    def silent(_):
        raise CandidateError("timeout", "it did not answer in time")

    found = verdict(silent)

    assert found.verdicts == dict.fromkeys(WEIGHTS, False)
    assert (found.fault.kind, found.detail) == ("timeout", "it did not answer in time")
    assert [list(exchange) for exchange in found.trace] == [["request"]]


def test_a_bad_exit_fails_the_protocol_and_leaves_the_report_judged():
    """The report was there before the exit, and is as right as it was."""
    at_end = CandidateError("exit_status", "it exited with status 3 when its input ended")
    found = verdict(report_of, at_end=at_end)

    assert found.verdicts == dict.fromkeys(WEIGHTS, True) | {"protocol": False}
    assert found.fault is at_end


@pytest.mark.parametrize("case", [CASE, INCOMPLETE], ids=lambda case: case.id)
def test_the_oracle_looks_at_the_recording_and_not_at_the_request(case):
    """Otherwise a mistake in making a request would be made again in judging its answer."""
    right = report_of(request_of(case))
    spoilt = copy.deepcopy(case.content)
    spoilt["request"]["recording"] = {"source": {}, "metadata": {}, "observations": []}
    other = Case(id=case.id, seed=case.seed, content=spoilt)

    assert verdict(lambda _: right, other).verdicts == dict.fromkeys(WEIGHTS, True)


@pytest.mark.parametrize(
    "odd",
    ["\ud800", "x" * 100_000, 10**4000, json.loads("[" * 150 + "]" * 150)],
    ids=["surrogate", "long", "digits", "deep"],
)
def test_an_odd_reply_leaves_a_row_that_can_be_written(odd):
    """A candidate must not be able to spoil the document that tells of it."""
    found = verdict(lambda request: {"ok": True, "report": reviewer()(request) | {"frame": odd}})
    row = CheckRow(
        check=CASE.id,
        verdicts=dict(found.verdicts),
        status="failed",
        detail=found.detail,
        trace=tuple(found.trace),
    )

    assert found.verdicts == dict.fromkeys(WEIGHTS, True) | {"clock": False}
    assert CheckRow.model_validate_json(row.model_dump_json()) == row
    assert len(found.trace[0]["response"]) < REPLY_SHOWN + 100
    assert len(found.detail) < 400


# What the cases catch, by the reference's own code and without a process.


def cases_of(recording, *, query_frame):
    """Return the four cases of a flight, whatever seed would draw them."""
    draw = random.Random(0)
    lost = decisive_frames(recording)
    return [
        Case(
            id=name,
            seed=0,
            content=content(
                recording,
                view,
                query_frame=query_frame,
                omitted=() if view.is_complete else lost,
                draw=draw,
            ),
        )
        for name, view in VIEWS.items()
    ]


def failures(review, recording, query_frame):
    """Return the (case, dimension) pairs in which a review of a flight is wrong."""
    cases = cases_of(recording, query_frame=query_frame)
    return {
        (case.id, dimension)
        for case in cases
        for dimension, is_right in verdict(
            lambda request: {"ok": True, "report": review(request)}, case
        ).verdicts.items()
        if not is_right
    }


def score(failed):
    shares = [
        weight * (4 - sum(d == dimension for _, d in failed)) / 4
        for dimension, weight in WEIGHTS.items()
    ]
    return round(math.fsum(shares), 8)


@flights
def test_the_reference_is_right_about_every_frame_of_every_flight(recording):
    """Nothing that a mutant fails could be credited to its fault otherwise."""
    asked = [number for number in QUERY_FRAMES if number not in decisive_frames(recording)]

    assert [failures(reviewer(), recording, number) for number in asked] == [set()] * len(asked)


@flights
@pytest.mark.parametrize("fault", FAULTS, ids=MUTANTS)
def test_a_declared_fault_is_caught_alike_in_every_flight(fault, recording):
    """A margin that depended on the flight would depend on the seed."""
    target, detecting, anywhere, wanted = MARGINS[fault.name]
    review = reviewer(*fault.edits["python"])
    for query_frame in (18, 24, 41):
        failed = failures(review, recording, query_frame)
        assert tuple(c for c in CASES if (c, target) in failed) == detecting
        assert len({case for case, _ in failed}) == anywhere
        assert score(failed) == wanted


IN_AXES = 'in zip(mapping["axes"], mapping["signs"], strict=True)'
SPEED = "math.hypot(*queried.velocity)"
VELOCITY = 'velocity=in_world_axes(row["velocity"], mapping)'
PEAK = "peak = max(rows, key=height)"
ADDED = "start + offset for"
QUERIED = 'queried = by_frame[request["query_frame"]]'
MISSING = 'missing = sorted(set(metadata["expected_frames"]) - by_frame.keys())'
ALL_ERRORS = "exact_position(row.time, analytic)) for row in rows"


UNDECLARED = {
    "no-axes": ("coordinates", IN_AXES, 'in zip(range(3), mapping["signs"], strict=True)'),
    "axes-inverted": (
        "coordinates",
        IN_AXES,
        'in zip(map(mapping["axes"].index, range(3)), mapping["signs"], strict=True)',
    ),
    "no-signs": ("coordinates", "vector[axis] * sign * scale", "vector[axis] * scale"),
    "origin-subtracted": ("coordinates", ADDED, "offset - start for"),
    "origin-in-sensor-units": (
        "coordinates",
        ADDED,
        'start * mapping["meters_per_unit"] + offset for',
    ),
    "velocity-with-origin": (
        "coordinates",
        VELOCITY,
        'velocity=world_position(row["velocity"], mapping)',
    ),
    "velocity-in-sensor-units": ("coordinates", VELOCITY, 'velocity=row["velocity"]'),
    "level-speed": ("coordinates", SPEED, "math.hypot(*queried.velocity[:2])"),
    "climb-for-speed": ("coordinates", SPEED, "abs(queried.velocity[2])"),
    "query-by-place": ("clock", QUERIED, 'queried = rows[request["query_frame"]]'),
    "another-frame": ("clock", QUERIED, "queried = rows[len(rows) // 2]"),
    "clock-without-origin": (
        "clock",
        "(tick - origin) * seconds_per_tick",
        "tick * seconds_per_tick",
    ),
    "frame-as-float": ("clock", '"frame": queried.frame', '"frame": float(queried.frame)'),
    "highest-of-equal-peaks": ("metrics", PEAK, "peak = max(reversed(rows), key=height)"),
    "rows-as-they-come": (
        "metrics",
        "return sorted(rows, key=lambda row: row.frame)",
        "return rows",
    ),
    "another-axis-up": ("metrics", "return row.position[2]", "return abs(row.position[1])"),
    "twice-the-gravity": ("metrics", "gravity * time**2 / 2", "gravity * time**2"),
    "last-error": ("metrics", ALL_ERRORS, f"{ALL_ERRORS}[-1:]"),
    "no-last-frames": ("metrics", ALL_ERRORS, f"{ALL_ERRORS} if row.time < 1.9"),
    "gaps-inside-only": (
        "completeness",
        MISSING,
        "missing = sorted(set(range(rows[0].frame, rows[-1].frame)) - by_frame.keys())",
    ),
    "present-for-missing": (
        "completeness",
        MISSING,
        'missing = sorted(set(metadata["expected_frames"]) & by_frame.keys())',
    ),
    "a-tenth-key": (
        "protocol",
        '"missing_frames": missing,',
        '"missing_frames": missing, "note": "",',
    ),
}
"""By fault: the dimension that must notice it, and the edit of the reference that makes it."""


@pytest.mark.parametrize(("dimension", "find", "replacement"), UNDECLARED.values(), ids=UNDECLARED)
def test_a_fault_that_nobody_declared_is_caught_as_well(dimension, find, replacement):
    """Axes, signs, ties, gaps and the protocol have no mutant, and are not spared for it."""
    review = reviewer((find, replacement))
    caught = {
        found for recording in RECORDINGS.values() for _, found in failures(review, recording, 33)
    }

    assert dimension in caught


@pytest.mark.parametrize(
    "filled",
    ["exact_position(n / 30, metadata['analytic'])", "before.position"],
    ids=["by-the-formula", "by-the-frame-before"],
)
def test_gaps_that_are_filled_in_are_noticed_by_the_metrics(filled):
    """Who invents the missing rows reports a peak or an error that nobody observed."""
    invented = f"""rows = observations(recording)
    gaps = sorted(set(metadata["expected_frames"]) - {{row.frame for row in rows}})
    for n in gaps:
        before = next(row for row in reversed(rows) if row.frame < n)
        rows.append(Observation(n, n / 30, {filled}, before.velocity))
        rows.sort(key=lambda row: row.frame)"""
    edits = (("rows = observations(recording)", invented), (MISSING, "missing = gaps"))
    caught = [failures(reviewer(*edits), flight, 20) for flight in RECORDINGS.values()]

    assert set().union(*caught) == {("incomplete-recording", "metrics")}
    assert sum(map(bool, caught)) >= 3


# The controls as they ship.


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("fault", FAULTS, ids=MUTANTS)
def test_each_edit_of_a_fault_finds_its_text_once_in_the_reference(fault, language):
    """Found twice, or not at all, a fault would be another one than was declared."""
    reference = PACK.control("reference", language)
    (entry,) = reference
    text = reference[entry].decode()

    assert [text.count(find) for find, _ in fault.edits[language]] == [1]
    assert PACK.control(fault.name, language)[entry] != reference[entry]


def test_faults_and_targets_are_those_that_are_declared():
    """The table is what users are told; `protocol` has no fault of its own."""
    assert {m.name: m.target for m in PACK.info.mutants} == {
        name: target for name, (target, *_) in MARGINS.items()
    }
    assert {tuple(judged) for judged in PACK.info.cases.values()} == {tuple(WEIGHTS)}


def test_an_unknown_control_and_language_are_explained():
    """Both are typed by a person."""
    with pytest.raises(UsageError, match="nearest: assume-meters"):
        PACK.control("assume_meters", "python")
    with pytest.raises(UsageError, match="javascript"):
        PACK.control("reference", "typescript")


def test_the_prompt_names_every_field_and_weight(right):
    """It is the whole contract: what it leaves out, a candidate can only guess."""
    prompt = PACK.info.prompt

    assert all(f"| `{field}` |" in prompt for field in right)
    assert all(f"| {name} | {weight:.2f} |" in prompt for name, weight in WEIGHTS.items())
    assert f"at most {PACK.info.request_bytes} bytes" in prompt


# The controls as programs, each run once over six seeds.


def task(root, language, seeds):
    return Task(
        brief=TaskBrief(name="robot-evidence-review", prompt=PACK.info.prompt),
        kind="capability",
        root=root,
        toolchain=PACK.info.languages[language].toolchain,
        pack=PackRef(name="robot-evidence-review", seeds=seeds, language=language),
        weights=dict(WEIGHTS),
        limits=PACK.info.limits,
        sha256="0" * 64,
    )


def lab(toolchain, folder, threads):
    def staged():
        toolchain.stage(folder / "tools")
        return folder / "tools"

    return PackLab(
        sandbox=Bwrap(),
        toolchain=toolchain,
        interpreter=toolchain.interpreter(staged),
        pack=PACK,
        work=folder / "work",
        jobs=3,
        threads=threads,
    )


@pytest.fixture(scope="module")
def gradings_in(tmp_path_factory):
    """Return every control in a language, put to all cases of six seeds.

    Once is enough, whichever worker of the run asks for it.
    """
    shared = run_folder(tmp_path_factory) / "robot-evidence-review-graded"

    @cache
    def graded(language):
        folder = tmp_path_factory.mktemp(language)
        bench = lab({"python": Python, "javascript": Node}[language](), folder, threads)

        def grading(control):
            root = folder / control
            write_tree(root, PACK.control(control, language))
            return grade(task(folder, language, SEEDS), read_submission(root), bench)

        return {
            control: once(shared / f"{language}-{control}.json", Grading, partial(grading, control))
            for control in ("reference", "starter", *MUTANTS)
        }

    with CaseThreads() as threads:
        yield graded


@pytest.fixture(params=["python", pytest.param("javascript", marks=needs("node"))])
def gradings(request, gradings_in):
    return gradings_in(request.param)


@pytest.fixture(params=[USUAL_SEEDS, OTHER_SEEDS], ids=["usual", "other"])
def audit(request, gradings):
    """What the controls show with three of the seeds."""
    plan = AuditPlan(
        schema_version=SCHEMA_VERSION,
        batch="b1",
        task=task(Path(), "python", request.param).ref,
        mode="full",
        checks=dict(PACK.info.cases),
        weights=dict(WEIGHTS),
        mutants=tuple(
            PlannedMutant(name=mutant.name, target_dimension=mutant.target)
            for mutant in PACK.info.mutants
        ),
        sandbox="bwrap",
    )
    return assess(plan, {name: with_seeds(g, request.param) for name, g in gradings.items()})


def with_seeds(grading, seeds):
    rows = tuple(row for row in grading.rows if row.seed in seeds)
    return grading.model_copy(update={"rows": rows})


@pytest.mark.slow
@needs_bwrap
def test_the_reference_passes_every_case_of_every_seed(gradings):
    """It does so as a program too, with whatever its language makes of the numbers."""
    rows = gradings["reference"].rows

    assert [(row.seed, row.check) for row in rows] == list(product(SEEDS, CASES))
    assert {(row.status, row.detail) for row in rows} == {("passed", "")}
    assert {process.exit_code for row in rows for process in row.processes} == {0}


@pytest.mark.slow
@needs_bwrap
def test_the_starter_reads_a_request_and_dies_of_it(gradings):
    """It is unfinished where the work begins, and every case says so."""
    rows = gradings["starter"].rows

    assert {(row.status, row.cause.kind, row.answered) for row in rows} == {
        ("agent_error", "early_exit", False)
    }
    assert all("not written yet" in row.processes[0].stderr_tail for row in rows)
    assert {verdict for row in rows for verdict in row.verdicts.values()} == {False}


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize("name", MUTANTS)
def test_a_declared_fault_has_its_margin(audit, name):
    """The margins follow from which cases can see which fault, in every language and seed."""
    target, detecting, anywhere, score = MARGINS[name]
    (found,) = [mutant for mutant in audit.mutants if mutant.name == name]

    assert (found.class_, found.target_dimension) == ("detected", target)
    assert found.failing_cases == detecting
    assert (found.detection_margin, found.margin_any) == (len(detecting), anywhere)
    assert found.score == score


@pytest.mark.slow
@needs_bwrap
def test_the_audit_rests_on_one_case_for_one_fault(audit):
    """What each case is worth follows from the margins, and is told before one is dropped."""
    coverage = audit.coverage

    assert (audit.passed, audit.mutation_score, audit.detection.weakest_margin) == (True, 1.0, 1)
    assert audit.detection.single_case_detections == ("assume-complete",)
    assert audit.detection.sole_detector_cases == ("incomplete-recording",)
    assert coverage.leave_one_out == {
        "world-meters": 1.0,
        "millimeters-sensor-frame": 1.0,
        "centimeters-offset-clock": 1.0,
        "incomplete-recording": 5 / 6,
    }
    assert {frozenset(chosen) for chosen in coverage.minimal_sets} == {
        frozenset((scaled, "incomplete-recording")) for scaled in SCALED
    }
    assert coverage.minimal_sets_complete
    assert coverage.idle_cases == ()
    assert coverage.untargeted_dimensions == ("protocol",)
    assert audit.starter.evaluation.score == 0.0


@pytest.mark.slow
@needs_bwrap
def test_what_a_fault_gets_wrong_is_told_with_what_was_expected(gradings):
    """A person who reads a report must see what was wrong without running it again."""
    (row, *_) = [row for row in gradings["assume-complete"].rows if not row.passed]

    assert (row.check, row.seed) == ("incomplete-recording", 17)
    assert row.detail == "missing_frames must be [27, 44], not []"
    assert json.loads(row.trace[0]["response"])["report"]["missing_frames"] == []
