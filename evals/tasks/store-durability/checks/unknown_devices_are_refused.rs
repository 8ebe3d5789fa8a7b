use std::{env, fs, process};

use device_registry::{Error, Registry};

/// Every method but `add_device` refuses a device that is not there.
///
/// Otherwise a misspelt device gets settings that nobody ever sees.
#[test]
fn unknown_devices_are_refused() {
    let file = format!("unknown_devices_are_refused-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    let mut registry = open();
    registry.add_device("lamp").unwrap();
    let again = registry.add_device("lamp");
    assert!(matches!(again, Err(Error::DeviceExists(_))), "{again:?}");

    for (place, error) in [
        registry.rename_device("lmap", "desk-lamp").err(),
        registry.remove_device("lmap").err(),
        registry.set("lmap", "power", "on").err(),
        registry.update("lmap", &[("power", None)]).err(),
        registry.unset("lmap", "power").err(),
        registry.get("lmap", "power").err(),
        registry.settings("lmap").err(),
    ]
    .into_iter()
    .enumerate()
    {
        let is_refused = matches!(error, Some(Error::NoSuchDevice(_)));
        assert!(is_refused, "call {place}: {error:?}");
    }

    registry.add_device("lmap").unwrap();
    assert!(registry.settings("lmap").unwrap().is_empty());
}
