//! Prints the seconds of the duration that is its one argument, or fails with status 1.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    let text = env::args().nth(1).unwrap_or_default();
    match durations::seconds(&text) {
        Some(seconds) => {
            println!("{seconds}");
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("no duration: {text:?}");
            ExitCode::FAILURE
        }
    }
}
