// Durations as people write them.

const DURATION = /^(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?$/;

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
  const found = DURATION.exec(text);
  if (found === null || text === "") throw new RangeError(`no duration: ${text}`);
  const [hours, minutes, rest] = found.slice(1).map((number) => Number(number ?? 0));
  return hours * 3600 + minutes * 60 + rest;
}
