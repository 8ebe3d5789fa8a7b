use std::process::{Command, Output};

/// A text that is no duration is refused, also when it begins like one.
///
/// A function that gives up on everything must not pass, so one good call comes first.
#[test]
fn nonsense_is_refused() {
    assert_eq!(run("5m").stdout, b"300\n");

    for text in ["", "h", "90", "30m1h", "1h later", "-5m", "1.5h"] {
        let done = run(text);
        assert_eq!(done.status.code(), Some(1), "{text:?}");
        assert!(done.stdout.is_empty(), "{text:?}");
    }
}

fn run(text: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_durations");
    Command::new(program).arg(text).output().unwrap()
}
