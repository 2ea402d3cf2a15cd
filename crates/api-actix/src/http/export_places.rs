//! The exports that run: one at a time for a key.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::ApiKeyId;

use super::admission::share_exceeded;
use super::error::ApiError;

/// The keys with a running export.
#[derive(Default)]
pub(crate) struct Exports(Mutex<HashSet<ApiKeyId>>);

/// The place of a running export, until it is dropped.
pub(crate) struct ExportPlace {
    exports: Arc<Exports>,
    key: ApiKeyId,
}

impl Exports {
    /// Takes the place of the key's export.
    ///
    /// # Errors
    /// 429 while another one of the key runs.
    pub(crate) fn begin(self: &Arc<Self>, key: ApiKeyId) -> Result<ExportPlace, ApiError> {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
            return Ok(ExportPlace { exports: Arc::clone(self), key });
        }
        let message = "Rate limit exceeded: an export of this key is running; wait for it to end";
        Err(share_exceeded("key", "exports", 1).message(message))
    }
}

impl Drop for ExportPlace {
    fn drop(&mut self) {
        self.exports.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_has_one_export_at_a_time() {
        let exports = Arc::new(Exports::default());
        let key = |number: u128| ApiKeyId::from_uuid(uuid::Uuid::from_u128(number));
        let first = exports.begin(key(1)).unwrap();
        assert_eq!(exports.begin(key(1)).err().map(|error| error.status().as_u16()), Some(429));
        assert!(exports.begin(key(2)).is_ok());
        drop(first);
        assert!(exports.begin(key(1)).is_ok());
    }
}
