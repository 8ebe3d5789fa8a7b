use std::{env, fs, mem, process};

use device_registry::Registry;

/// A change is kept when its method returns, and not only when the registry is dropped.
///
/// No destructor runs when the power fails, and none runs for a value that is forgotten.
#[test]
fn changes_survive_power_cuts() {
    let file = format!("changes_survive_power_cuts-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    let mut registry = open();
    registry.add_device("lamp").unwrap();
    registry.set("lamp", "power", "on").unwrap();
    mem::forget(registry);
    assert_eq!(open().get("lamp", "power").unwrap().as_deref(), Some("on"));

    let mut registry = open();
    registry.rename_device("lamp", "desk-lamp").unwrap();
    mem::forget(registry);
    assert_eq!(open().devices(), ["desk-lamp"]);
}
