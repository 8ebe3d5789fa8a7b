use std::{env, fs, process};

use device_registry::Registry;

/// What is removed stays away from every registry that is opened later.
///
/// A removal is a change too, and what was not removed must outlive it.
#[test]
fn removals_persist() {
    let file = format!("removals_persist-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    let mut registry = open();
    registry.add_device("heater").unwrap();
    registry.add_device("lamp").unwrap();
    registry.set("lamp", "power", "on").unwrap();
    registry.set("lamp", "dim", "40").unwrap();
    drop(registry);

    let was_set = open().unset("lamp", "dim").unwrap();
    let is_set = open().unset("lamp", "dim").unwrap();
    assert_eq!((was_set, is_set), (true, false));
    open().remove_device("heater").unwrap();

    assert_eq!(open().devices(), ["lamp"]);
    let settings = open().settings("lamp").unwrap();
    assert_eq!(format!("{settings:?}"), r#"{"power": "on"}"#);
}
