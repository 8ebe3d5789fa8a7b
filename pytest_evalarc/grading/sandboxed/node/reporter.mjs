// The test reporter of a check, which is made by whoever set its maker first.

let make;

/** Set who makes the reporter, before the test runner starts. */
export function makeReporterBy(maker) {
  make = maker;
}

/** Give the test runner its reporter; it asks first, and nobody else is given one. */
export default class Reporter {
  constructor() {
    const mine = make;
    make = undefined;
    return mine();
  }
}
