//! The process's environment, read in one place.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// A copy of the environment variables, so that tests can use their own.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// Reads the variables of this process. Names that are not UTF-8 cannot be ours and are skipped.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect())
    }

    /// Returns a variable that is set, not empty and UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    }

    /// Returns the first of several variables that is set.
    pub fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name)).map(str::to_owned)
    }

    /// Returns every variable whose name begins with `prefix`, in the order of names; the value is `None` if it is not
    /// UTF-8.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, Option<&'a str>)> + 'a {
        self.0
            .iter()
            .filter(move |(name, _)| name.starts_with(prefix))
            .map(|(name, value)| (name.as_str(), value.to_str()))
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
