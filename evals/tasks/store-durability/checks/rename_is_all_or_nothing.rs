use std::{env, fs, process};

use device_registry::{Error, Registry};

/// A rename that is refused leaves both devices as they were.
///
/// The device must not be gone when it turns out that it cannot have the new name.
#[test]
fn rename_is_all_or_nothing() {
    let file = format!("rename_is_all_or_nothing-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    let mut registry = open();
    for (device, dim) in [("lamp", "40"), ("desk-lamp", "80")] {
        registry.add_device(device).unwrap();
        registry.set(device, "dim", dim).unwrap();
    }

    for new_name in ["desk-lamp", "lamp"] {
        let refused = registry.rename_device("lamp", new_name);
        assert!(
            matches!(refused, Err(Error::DeviceExists(_))),
            "{refused:?}"
        );
    }
    let refused = registry.rename_device("lamp", "Lamp");
    assert!(matches!(refused, Err(Error::InvalidName(_))), "{refused:?}");

    // The next good change would write what a refused one left pending.
    registry.add_device("heater").unwrap();
    drop(registry);

    let registry = open();
    assert_eq!(registry.devices(), ["desk-lamp", "heater", "lamp"]);
    for (device, dim) in [("lamp", "40"), ("desk-lamp", "80")] {
        assert_eq!(registry.get(device, "dim").unwrap().as_deref(), Some(dim));
    }
}
