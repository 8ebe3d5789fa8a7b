use std::{error, fmt, io};

/// Why a registry refused what it was asked.
#[derive(Debug)]
pub enum Error {
    /// This name of a device or a setting breaks the naming rule.
    InvalidName(String),
    /// This value of a setting breaks the value rule.
    InvalidValue(String),
    /// There is no device of this name.
    NoSuchDevice(String),
    /// There is a device of this name already.
    DeviceExists(String),
    /// The file could not be read or written; the registry must be opened again.
    File(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName(name) => write!(formatter, "not a name: {name:?}"),
            Self::InvalidValue(value) => write!(formatter, "not a value: {value:?}"),
            Self::NoSuchDevice(name) => write!(formatter, "no such device: {name}"),
            Self::DeviceExists(name) => write!(formatter, "a device already: {name}"),
            Self::File(error) => write!(formatter, "the file of the registry: {error}"),
        }
    }
}

impl error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}
