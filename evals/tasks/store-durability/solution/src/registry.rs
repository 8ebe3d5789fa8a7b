use std::collections::BTreeMap;
use std::path::Path;

use fixture_store::{Store, Transaction};

use crate::{check_name, check_value, Error};

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
        let keys = self.store.records().map(|(key, _)| key);
        keys.filter(|key| !key.contains('/'))
            .map(str::to_string)
            .collect()
    }

    /// Returns all settings of a device as values by name.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if the name breaks the naming rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn settings(&self, device: &str) -> Result<BTreeMap<String, String>, Error> {
        self.require(device)?;
        let records = self.store.records();
        let settings = records.filter_map(|(key, value)| {
            let (owner, setting) = key.split_once('/')?;
            (owner == device).then(|| (setting.to_string(), value.to_string()))
        });
        Ok(settings.collect())
    }

    /// Returns the value of one setting of a device, if the device has it.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if one of the names breaks the naming rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn get(&self, device: &str, setting: &str) -> Result<Option<String>, Error> {
        check_name(setting)?;
        self.require(device)?;
        Ok(self.store.get(&key(device, setting)).map(str::to_string))
    }

    /// Adds a device, which has no settings yet.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if the name breaks the naming rule.
    /// - [`Error::DeviceExists`] if there is such a device already.
    pub fn add_device(&mut self, device: &str) -> Result<(), Error> {
        self.require_none(device)?;
        self.change(|transaction| put_device(transaction, device, &BTreeMap::new()))
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
        check_name(new_name)?;
        let settings = self.settings(device)?;
        self.require_none(new_name)?;
        self.change(|transaction| {
            remove_device(transaction, device, &settings);
            put_device(transaction, new_name, &settings);
        })
    }

    /// Removes a device with all its settings.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if the name breaks the naming rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn remove_device(&mut self, device: &str) -> Result<(), Error> {
        let settings = self.settings(device)?;
        self.change(|transaction| remove_device(transaction, device, &settings))
    }

    /// Gives one setting of a device a value, whether or not it had one.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if one of the names breaks the naming rule.
    /// - [`Error::InvalidValue`] if the value breaks the value rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn set(&mut self, device: &str, setting: &str, value: &str) -> Result<(), Error> {
        self.update(device, &[(setting, Some(value))])
    }

    /// Removes one setting of a device, and returns whether the device had it.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] if one of the names breaks the naming rule.
    /// - [`Error::NoSuchDevice`] if there is no such device.
    pub fn unset(&mut self, device: &str, setting: &str) -> Result<bool, Error> {
        if self.get(device, setting)?.is_none() {
            return Ok(false);
        }
        self.change(|transaction| transaction.remove(key(device, setting)))?;
        Ok(true)
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
        for (setting, value) in changes {
            check_name(setting)?;
            value.map_or(Ok(()), check_value)?;
        }
        self.require(device)?;
        self.change(|transaction| {
            for (setting, value) in changes {
                match value {
                    Some(value) => transaction.put(key(device, setting), *value),
                    None => transaction.remove(key(device, setting)),
                }
            }
        })
    }

    fn require(&self, device: &str) -> Result<(), Error> {
        check_name(device)?;
        match self.store.get(device) {
            Some(_) => Ok(()),
            None => Err(Error::NoSuchDevice(device.to_string())),
        }
    }

    fn require_none(&self, device: &str) -> Result<(), Error> {
        match self.require(device) {
            Ok(()) => Err(Error::DeviceExists(device.to_string())),
            Err(Error::NoSuchDevice(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes changes that belong together, and returns when they are in the file.
    fn change(&mut self, changes: impl FnOnce(&mut Transaction<'_>)) -> Result<(), Error> {
        let mut transaction = self.store.begin();
        changes(&mut transaction);
        transaction.finish();
        self.store.commit()?;
        Ok(())
    }
}

// A device is a record under its name, and each of its settings one under `device/setting`.

fn key(device: &str, setting: &str) -> String {
    format!("{device}/{setting}")
}

fn put_device(
    transaction: &mut Transaction<'_>,
    device: &str,
    settings: &BTreeMap<String, String>,
) {
    transaction.put(device, "");
    for (setting, value) in settings {
        transaction.put(key(device, setting), value);
    }
}

fn remove_device(
    transaction: &mut Transaction<'_>,
    device: &str,
    settings: &BTreeMap<String, String>,
) {
    transaction.remove(device);
    for setting in settings.keys() {
        transaction.remove(key(device, setting));
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
