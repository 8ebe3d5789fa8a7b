"use strict";

// Reviews of recorded flights: a JSON request per line in, a JSON report per line out.

const readline = require("node:readline");

/** Return a sensor's vector along the world's axes and in meters, its origin left out. */
function inWorldAxes(vector, mapping) {
  const scale = mapping.meters_per_unit;
  return mapping.axes.map((axis, j) => vector[axis] * mapping.signs[j] * scale);
}

/** Return where in the world a sensor's position is; only positions have an origin. */
function worldPosition(position, mapping) {
  const origin = mapping.origin_m;
  return inWorldAxes(position, mapping).map((offset, j) => origin[j] + offset);
}

/** Return the time of a tick, counted from the clock's origin. */
function seconds(tick, clock) {
  return (tick - clock.origin_tick) * clock.seconds_per_tick;
}

/** Return what was observed in world axes, meters and seconds, by ascending frame. */
function observations({ metadata, observations: rows }) {
  const { world_from_sensor: mapping, clock } = metadata;
  return rows
    .map(({ frame, tick, position, velocity }) => ({
      frame,
      time: seconds(tick, clock),
      position: worldPosition(position, mapping),
      velocity: inWorldAxes(velocity, mapping),
    }))
    .sort((a, b) => a.frame - b.frame);
}

/** Return where the flight would be without any error of integration. */
function exactPosition(time, { position0_m, velocity0_m_s, gravity_m_s2 }) {
  return position0_m.map(
    (start, j) => start + velocity0_m_s[j] * time + (gravity_m_s2[j] * time ** 2) / 2,
  );
}

/** Return how far apart two positions are. */
function distance(a, b) {
  return Math.hypot(...a.map((component, j) => component - b[j]));
}

/** Return the greatest distance between an observation and the exact flight. */
function largestError(rows, analytic) {
  return Math.max(...rows.map((row) => distance(row.position, exactPosition(row.time, analytic))));
}

/** Return how high an observation is; the last axis points up. */
function height(row) {
  return row.position[2];
}

/** Return the highest observation; of equals the first, which has the lowest frame. */
function highest(rows) {
  return rows.reduce((best, row) => (height(row) > height(best) ? row : best));
}

/** Return the report on the recording of a request. */
function review({ query_frame, recording }) {
  const { source, metadata } = recording;
  const rows = observations(recording);
  const seen = new Set(rows.map((row) => row.frame));
  const queried = rows.find((row) => row.frame === query_frame);
  const peak = highest(rows);
  const missing = metadata.expected_frames.filter((frame) => !seen.has(frame));
  return {
    source_sha256: source.sha256,
    frame: queried.frame,
    time_seconds: queried.time,
    position_m: queried.position,
    speed_m_s: Math.hypot(...queried.velocity),
    max_position_error_m: largestError(rows, metadata.analytic),
    peak_frame: peak.frame,
    peak_height_m: height(peak),
    missing_frames: missing.sort((a, b) => a - b),
  };
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  console.log(JSON.stringify({ ok: true, report: review(JSON.parse(line)) }));
});
