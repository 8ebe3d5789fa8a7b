use std::{collections::BTreeMap, env, fs, process};

use device_registry::Registry;

/// A value is read as it was given, and no value only where there is none.
///
/// Empty values and white space are the ones to lose.
#[test]
fn values_come_back_unchanged() {
    let file = format!("values_come_back_unchanged-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    let values = BTreeMap::from(
        [
            ("a", ""),
            ("b", " "),
            ("c", "\n"),
            ("d", "\ttwo\nlines\n"),
            ("e", "C:\\new"),
            ("f", "größe/=+-"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string())),
    );
    let mut registry = open();
    registry.add_device("lamp").unwrap();
    for (name, value) in &values {
        registry.set("lamp", name, value).unwrap();
    }
    drop(registry);

    let registry = open();
    assert_eq!(registry.settings("lamp").unwrap(), values);
    assert_eq!(registry.get("lamp", "a").unwrap().as_deref(), Some(""));
    assert_eq!(registry.get("lamp", "z").unwrap(), None);
}
