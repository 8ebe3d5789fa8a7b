use std::{collections::BTreeMap, env, fs, process};

use device_registry::Registry;

/// A device has its own settings, and nobody else's.
///
/// Names may begin alike, and a name may be used again after a removal or a rename.
#[test]
fn devices_are_kept_apart() {
    let file = format!("devices_are_kept_apart-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    let mut registry = open();
    for device in ["lamp", "lamp-2", "lamp2"] {
        registry.add_device(device).unwrap();
        registry.set(device, device, device).unwrap();
    }
    assert_eq!(registry.devices(), ["lamp", "lamp-2", "lamp2"]);
    for device in registry.devices() {
        let settings = registry.settings(&device).unwrap();
        assert_eq!(settings, BTreeMap::from([(device.clone(), device)]));
    }

    registry.rename_device("lamp", "desk-lamp").unwrap();
    registry.remove_device("lamp2").unwrap();
    for device in ["lamp", "lamp2"] {
        registry.add_device(device).unwrap();
        assert_eq!(registry.get(device, device).unwrap(), None);
        assert!(registry.settings(device).unwrap().is_empty());
    }
    for (device, setting) in [("desk-lamp", "lamp"), ("lamp-2", "lamp-2")] {
        let value = registry.get(device, setting).unwrap();
        assert_eq!(value.as_deref(), Some(setting));
    }
}
