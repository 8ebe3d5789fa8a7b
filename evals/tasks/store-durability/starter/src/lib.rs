//! The devices of a household and their settings, kept in one file; see [`Registry`].

mod error;
mod registry;
mod rules;

pub use error::Error;
pub use registry::Registry;
pub use rules::{check_name, check_value, MAX_NAME_LENGTH, MAX_VALUE_LENGTH};
