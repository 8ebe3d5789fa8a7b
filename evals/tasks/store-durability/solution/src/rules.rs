use crate::Error;

/// How many characters a name has at most.
pub const MAX_NAME_LENGTH: usize = 32;

/// How many characters a value has at most.
pub const MAX_VALUE_LENGTH: usize = 200;

/// Refuses a name of a device or a setting that breaks the naming rule.
///
/// A name is a letter from `a` to `z`, followed by such letters, digits from `0` to
/// `9` and hyphens. It has at most [`MAX_NAME_LENGTH`] characters.
///
/// # Errors
///
/// [`Error::InvalidName`] if the name breaks this rule.
pub fn check_name(name: &str) -> Result<(), Error> {
    let begins_well = name.starts_with(|first: char| first.is_ascii_lowercase());
    let is_name = begins_well && name.len() <= MAX_NAME_LENGTH && name.chars().all(may_be_in_name);
    if is_name {
        Ok(())
    } else {
        Err(Error::InvalidName(name.to_string()))
    }
}

/// Refuses a value that a setting may not have.
///
/// A value is any text of at most [`MAX_VALUE_LENGTH`] characters, the empty one too.
/// It has no control characters (category Cc of Unicode) but tabs and newlines.
///
/// # Errors
///
/// [`Error::InvalidValue`] if the value breaks this rule.
pub fn check_value(value: &str) -> Result<(), Error> {
    if value.chars().count() <= MAX_VALUE_LENGTH && value.chars().all(may_be_in_value) {
        Ok(())
    } else {
        Err(Error::InvalidValue(value.to_string()))
    }
}

fn may_be_in_name(char: char) -> bool {
    char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-'
}

fn may_be_in_value(char: char) -> bool {
    !char.is_control() || char == '\t' || char == '\n'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_hyphens_are_a_name() {
        assert!(check_name("ceiling-lamp-2").is_ok());
    }

    #[test]
    fn anything_else_is_no_name() {
        for name in ["", "Lamp", "2nd-lamp", "ceiling lamp", "lämp"] {
            assert!(
                matches!(check_name(name), Err(Error::InvalidName(_))),
                "{name:?}"
            );
        }
    }
}
