use std::collections::BTreeMap;
use std::path::Path;

use fixture_store::Store;

use crate::Error;

/// The devices of one file, each with its settings.
///
/// A device has a name. A setting has a name, which is its own within the device, and a
/// value. They follow [`check_name`](crate::check_name) and
/// [`check_value`](crate::check_value) in every method alike.
///
/// When a method that changes something has returned `Ok`, every registry that is opened
/// on the file from then on has the change, even if the power fails in the next moment.
/// When it has returned an error, the devices and settings are what they were before the
/// call. Only one registry at a time makes changes to a file.
#[derive(Debug)]
pub struct Registry {
    store: Store,
}

impl Registry {
    /// Opens the registry of a file, which need not exist yet; its folder does.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let store = Store::open(path)?;
        Ok(Self { store })
    }

    /// Returns the names of all devices, sorted.
    pub fn devices(&self) -> Vec<String> {
        if self.store.records().next().is_none() {
            return Vec::new();
        }
        unimplemented!()
    }

    /// Returns all settings of a device as values by name.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if the name breaks the naming rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn settings(&self, device: &str) -> Result<BTreeMap<String, String>, Error> {
        unimplemented!()
    }

    /// Returns the value of one setting of a device, if the device has it.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if one of the names breaks the naming rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn get(&self, device: &str, setting: &str) -> Result<Option<String>, Error> {
        unimplemented!()
    }

    /// Adds a device, which has no settings yet.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if the name breaks the naming rule.
    /// - [`Error::DeviceExists`] if there is such a device already.
    pub fn add_device(&mut self, device: &str) -> Result<(), Error> {
        unimplemented!()
    }

    /// Gives a device another name; it keeps its settings.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if one of the names breaks the naming rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    /// - [`Error::DeviceExists`] if there is a device of the new name already, which may
    ///   be the device itself.
    pub fn rename_device(&mut self, device: &str, new_name: &str) -> Result<(), Error> {
        unimplemented!()
    }

    /// Removes a device with all its settings.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if the name breaks the naming rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn remove_device(&mut self, device: &str) -> Result<(), Error> {
        unimplemented!()
    }

    /// Gives one setting of a device a value, whether or not it had one.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if one of the names breaks the naming rule.
    /// - [`Error::InvalidValue`] if the value breaks the value rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn set(&mut self, device: &str, setting: &str, value: &str) -> Result<(), Error> {
        unimplemented!()
    }

    /// Removes one setting of a device, and returns whether the device had it.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if one of the names breaks the naming rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn unset(&mut self, device: &str, setting: &str) -> Result<bool, Error> {
        unimplemented!()
    }

    /// Changes several settings of a device: all of them, or none.
    ///
    /// Each change is the name of a setting and its new value; without a value, the
    /// setting is removed if the device has it. Settings that are not named stay.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if one of the names breaks the naming rule.
    /// - [`Error::InvalidValue`] if one of the values breaks the value rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn update(&mut self, device: &str, changes: &[(&str, Option<&str>)]) -> Result<(), Error> {
        unimplemented!()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_exist_holds_no_devices() {
        let path = std::env::temp_dir().join("device-registry/no-such-folder/home.store");

        let registry = Registry::open(path).unwrap();

        assert_eq!(registry.devices(), Vec::<String>::new());
    }
}
