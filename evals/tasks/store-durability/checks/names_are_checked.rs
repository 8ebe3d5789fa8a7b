use std::{env, fs, process};

use device_registry::{Error, Registry};

/// Every method that takes a name refuses a bad one.
///
/// The rule is one rule: no way in may be laxer than another.
#[test]
fn names_are_checked() {
    let file = format!("names_are_checked-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    let longest = "a".repeat(32);
    let too_long = "a".repeat(33);
    let mut registry = open();
    registry.add_device(&longest).unwrap();

    for (place, error) in [
        registry.add_device(&too_long).err(),
        registry.rename_device(&longest, "desk/lamp").err(),
        registry.rename_device("Lamp", "lamp").err(),
        registry.remove_device("").err(),
        registry.set(&longest, "power\n", "on").err(),
        registry.update(&longest, &[("-dim", None)]).err(),
        registry.unset(&longest, "größe").err(),
        registry.get(&longest, "2nd").err(),
        registry.settings("desk lamp").err(),
    ]
    .into_iter()
    .enumerate()
    {
        let is_refused = matches!(error, Some(Error::InvalidName(_)));
        assert!(is_refused, "call {place}: {error:?}");
    }

    assert_eq!(registry.devices(), [&*longest]);
    assert!(registry.settings(&longest).unwrap().is_empty());
}
