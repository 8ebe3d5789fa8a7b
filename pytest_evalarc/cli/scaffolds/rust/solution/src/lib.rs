//! Durations as people write them.

const UNITS: [(char, u64); 3] = [('h', 3600), ('m', 60), ('s', 1)];

/// Returns the seconds of a duration such as `1h30m`, `45s` or `2h`.
///
/// A duration has hours, minutes and seconds, in this order. Each is a whole number in the
/// digits 0 to 9 with its unit, each may be left out, and at least one of them is there.
/// Any other text gives `None`, and so does a duration whose seconds do not fit.
pub fn seconds(text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut rest = text;
    for (unit, length) in UNITS {
        if let Some((number, after)) = rest.split_once(unit) {
            total = total.checked_add(whole(number)?.checked_mul(length)?)?;
            rest = after;
        }
    }
    let is_duration = !text.is_empty() && rest.is_empty();
    is_duration.then_some(total)
}

fn whole(digits: &str) -> Option<u64> {
    // A sign, which parsing takes, is no digit.
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| digits.parse().ok())?
}
