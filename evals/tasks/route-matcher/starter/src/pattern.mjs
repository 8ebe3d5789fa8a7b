// Route patterns.
//
// A pattern is a text that begins with a slash. Slashes part it into segments:
//
// - `:name` is a parameter. It stands for one segment, whatever it holds, but not an empty one.
// - `*name` is a wildcard. It stands for all segments that are left, and there may be none. It can
//   only be the last segment.
// - Any other text is static. It stands for itself: upper and lower case differ, and no character
//   in it is special.
//
// A name is one or more letters, digits and underscores. No name occurs twice in one pattern. Only
// the pattern `/` has an empty segment.

/** A pattern breaks a rule; the message says which pattern and which rule. */
export class InvalidPattern extends TypeError {}

/** Return the regular expression of a pattern. */
export function compile(pattern) {
  if (!pattern.startsWith("/")) throw new InvalidPattern(`${pattern} does not begin with a slash`);
  const source = pattern
    .replace(/:(\w+)/g, "(?<$1>[^/]+)")
    .replace(/\*(\w+)/g, "(?<$1>.+)");
  return new RegExp(`^${source}/?$`);
}
