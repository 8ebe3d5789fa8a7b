// Durations as people write them.

/**
 * Return the seconds of a duration such as `1h30m`, `45s` or `2h`.
 *
 * A duration has hours, minutes and seconds, in this order. Each is a whole number in the digits
 * 0 to 9 with its unit, each may be left out, and at least one of them is there.
 *
 * @param {string} text
 * @returns {number}
 * @throws {RangeError} The text is no duration.
 */
export function seconds(text) {
  throw new Error("not implemented");
}
