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

const KINDS = { ":": "param", "*": "rest" };

/** Return the segments of a pattern, each as `{ kind, text }`; the kinds are the keys of RANK. */
export function parse(pattern) {
  if (!pattern.startsWith("/")) throw new InvalidPattern(`${pattern} does not begin with a slash`);
  if (pattern === "/") return [];
  const segments = pattern.slice(1).split("/").map(parseSegment);
  const names = new Set();
  for (const [index, { kind, text }] of segments.entries()) {
    if (kind === "static") {
      if (text === "") throw new InvalidPattern(`${pattern} has an empty segment`);
      continue;
    }
    if (!/^\w+$/.test(text)) throw new InvalidPattern(`${pattern} has a bad name: "${text}"`);
    if (names.has(text)) throw new InvalidPattern(`${pattern} has two parameters named ${text}`);
    names.add(text);
    if (kind === "rest" && index !== segments.length - 1) {
      throw new InvalidPattern(`${pattern} goes on after a wildcard`);
    }
  }
  return segments;
}

function parseSegment(segment) {
  const kind = KINDS[segment[0]];
  return kind === undefined ? { kind: "static", text: segment } : { kind, text: segment.slice(1) };
}

const RANK = { static: 0, param: 1, rest: 2 };

/** Return a negative number when the first of two patterns that fit one path is the better one. */
export function compare(segments, others) {
  const length = Math.max(segments.length, others.length);
  for (let index = 0; index < length; index += 1) {
    const difference = rank(segments[index]) - rank(others[index]);
    if (difference !== 0) return difference;
  }
  return 0;
}

function rank(segment) {
  return segment === undefined ? 0 : RANK[segment.kind];
}
