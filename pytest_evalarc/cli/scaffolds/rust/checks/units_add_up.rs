use std::process::Command;

/// Hours, minutes and seconds are added up, whichever of them are there.
///
/// The crate's program is started, so the code under test shares nothing with this.
#[test]
fn units_add_up() {
    for (text, seconds) in [
        ("1h30m", "5400\n"),
        ("2h", "7200\n"),
        ("45s", "45\n"),
        ("1h1m1s", "3661\n"),
    ] {
        let done = Command::new(env!("CARGO_BIN_EXE_durations"))
            .arg(text)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stdout), seconds, "{text}");
        assert!(done.status.success(), "{text}");
    }
}
