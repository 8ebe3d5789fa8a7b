use std::{env, fs, process};

use device_registry::{check_value, Error, Registry};

/// A value is refused for what the rule names, and for nothing else.
///
/// Characters are neither bytes nor all of ASCII.
#[test]
fn values_are_checked() {
    let file = format!("values_are_checked-{}.store", process::id());
    let path = env::temp_dir().join(file);
    let _ = fs::remove_file(&path);
    let open = || Registry::open(&path).unwrap();

    let mut registry = open();
    registry.add_device("lamp").unwrap();

    let longest = "ß".repeat(200);
    for good in ["", "two\n\tlines", &longest] {
        assert!(check_value(good).is_ok(), "{good:?}");
        registry.set("lamp", "motto", good).unwrap();
    }

    let too_long = "ß".repeat(201);
    for bad in ["a\rb", "\0", "\u{7f}", "next\u{85}line", &too_long] {
        for refused in [
            check_value(bad),
            registry.set("lamp", "motto", bad),
            registry.update("lamp", &[("dim", Some("40")), ("motto", Some(bad))]),
        ] {
            let is_refused = matches!(refused, Err(Error::InvalidValue(_)));
            assert!(is_refused, "{bad:?}: {refused:?}");
        }
    }
    assert_eq!(registry.get("lamp", "motto").unwrap(), Some(longest));
}
