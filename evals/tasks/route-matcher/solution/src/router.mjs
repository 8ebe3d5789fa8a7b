// Finds the route of a request.

import { compare, InvalidPattern, parse } from "./pattern.mjs";

export { InvalidPattern };

/**
 * Return the pattern that fits a URL best, with what its parameters stand for; null when none does.
 *
 * The URL is an absolute path, as the first line of a request has it. A query and a fragment are
 * no part of the path, and neither is one slash at its end. Percent escapes are decoded, once, in
 * each segment alone: an escaped slash parts nothing. A URL with an escape that cannot be decoded
 * fits no pattern.
 *
 * Of several patterns that fit, the best is found from left to right. In the first segment where
 * they differ, static text is better than a parameter, and a parameter better than a wildcard; a
 * pattern that has ended is better than a wildcard for nothing. Of equal ones, the first is taken.
 *
 * @param {string[]} patterns All of them are checked, also when an earlier one fits.
 * @param {string} url
 * @returns {{ pattern: string, params: Record<string, string | string[]> } | null} A parameter is
 *   one decoded segment, a wildcard the list of its decoded segments. Any name can be a parameter.
 * @throws {InvalidPattern} A pattern breaks a rule.
 */
export function match(patterns, url) {
  const routes = patterns.map((pattern) => ({ pattern, segments: parse(pattern) }));
  const path = parsePath(url);
  if (path === null) return null;
  let best = null;
  for (const { pattern, segments } of routes) {
    const params = fit(segments, path);
    if (params === null) continue;
    if (best === null || compare(segments, best.segments) < 0) best = { pattern, segments, params };
  }
  return best === null ? null : { pattern: best.pattern, params: best.params };
}

/** Return the decoded segments of a URL's path; null when one cannot be decoded. */
function parsePath(url) {
  const [path] = url.split(/[?#]/);
  const segments = path.split("/").slice(1);
  if (segments.at(-1) === "") segments.pop();
  try {
    return segments.map((segment) => decodeURIComponent(segment));
  } catch {
    return null;
  }
}

/** Return what the parameters stand for when a pattern fits a path; null when it does not. */
function fit(segments, path) {
  const params = [];
  for (const [index, { kind, text }] of segments.entries()) {
    if (kind === "rest") return Object.fromEntries([...params, [text, path.slice(index)]]);
    const value = path[index];
    if (kind === "static" ? value !== text : !value) return null;
    if (kind === "param") params.push([text, value]);
  }
  return segments.length === path.length ? Object.fromEntries(params) : null;
}

/** Return what `match` gives for each URL, in their order. */
export function matchAll(patterns, urls) {
  return urls.map((url) => match(patterns, url));
}
