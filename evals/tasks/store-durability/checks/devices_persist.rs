use std::{env, fs, process};

use device_registry::Registry;

/// A device that was added or renamed is there in every registry that is opened later.
///
/// Neither needs a setting to be changed as well.
#[test]
fn devices_persist() {
    let file = format!("devices_persist-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    open().add_device("lamp").unwrap();
    open().add_device("heater").unwrap();
    assert_eq!(open().devices(), ["heater", "lamp"]);

    open().rename_device("lamp", "desk-lamp").unwrap();
    assert_eq!(open().devices(), ["desk-lamp", "heater"]);
}
