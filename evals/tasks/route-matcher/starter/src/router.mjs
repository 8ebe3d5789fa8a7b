// Finds the route of a request.

import { compile, InvalidPattern } from "./pattern.mjs";

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
  const [path] = decodeURIComponent(url).split(/[?#]/);
  for (const pattern of patterns) {
    const found = compile(pattern).exec(path);
    if (found !== null) return { pattern, params: { ...found.groups } };
  }
  return null;
}

/** Return what `match` gives for each URL, in their order. */
export function matchAll(patterns, urls) {
  return urls.map((url) => match(patterns, url));
}
