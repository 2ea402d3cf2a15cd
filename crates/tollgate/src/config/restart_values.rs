//! The values of the keys that need a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::deserialize::Value;

/// The values of the keys that need a restart, by `section.key`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RestartValues(BTreeMap<String, Value>);

impl fmt::Debug for RestartValues {
    /// Hides the values, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RestartValues(…)")
    }
}

impl RestartValues {
    /// Creates the collection.
    pub fn new(values: BTreeMap<String, Value>) -> Self {
        Self(values)
    }

    /// Returns the keys whose values differ, in order.
    pub fn changed(&self, other: &Self) -> Vec<String> {
        let keys: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        keys.into_iter().filter(|key| self.0.get(*key) != other.0.get(*key)).cloned().collect()
    }
}
