use std::{env, fs, process};

use device_registry::Registry;

/// What is set or updated is there in every registry that is opened later.
///
/// The registry that made a change answers from memory, so it is never the one to ask.
#[test]
fn settings_persist() {
    let file = format!("settings_persist-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    let mut registry = open();
    registry.add_device("lamp").unwrap();
    registry.set("lamp", "power", "off").unwrap();
    registry.set("lamp", "colour", "red").unwrap();
    registry.set("lamp", "power", "on").unwrap();
    drop(registry);

    let settings = open().settings("lamp").unwrap();
    let expected = r#"{"colour": "red", "power": "on"}"#;
    assert_eq!(format!("{settings:?}"), expected);

    let changes = [
        ("power", Some("off")),
        ("colour", None),
        ("dim", Some("40")),
    ];
    open().update("lamp", &changes).unwrap();

    let settings = open().settings("lamp").unwrap();
    let expected = r#"{"dim": "40", "power": "off"}"#;
    assert_eq!(format!("{settings:?}"), expected);
}
