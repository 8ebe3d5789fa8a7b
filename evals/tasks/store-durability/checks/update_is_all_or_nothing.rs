use std::{env, fs, process};

use device_registry::{Error, Registry};

/// An update that is refused changes nothing, neither now nor later.
///
/// What it leaves pending in memory would be written along with the next good change.
#[test]
fn update_is_all_or_nothing() {
    let file = format!("update_is_all_or_nothing-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    let mut registry = open();
    registry.add_device("lamp").unwrap();
    registry.set("lamp", "power", "on").unwrap();
    let before = registry.settings("lamp").unwrap();

    let too_long = "x".repeat(201);
    let changes = [
        ("dim", Some("40")),
        ("power", None),
        ("motto", Some(&*too_long)),
    ];
    let refused = registry.update("lamp", &changes);

    assert!(
        matches!(refused, Err(Error::InvalidValue(_))),
        "{refused:?}"
    );
    assert_eq!(registry.settings("lamp").unwrap(), before);

    registry.add_device("heater").unwrap();
    drop(registry);
    assert_eq!(open().settings("lamp").unwrap(), before);
}
