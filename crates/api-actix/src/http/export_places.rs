//! The exports that run: one at a time for a key.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::ApiKeyId;

use super::admission::{Owner, share_exceeded};
use super::error::ApiError;

/// The keys with a running export.
#[derive(Default)]
pub(crate) struct Exports(Mutex<HashSet<ApiKeyId>>);

/// The place of a running export, until it is dropped; the operator needs none.
pub(crate) struct ExportPlace(Option<(Arc<Exports>, ApiKeyId)>);

impl Exports {
    /// Takes the place of the key's export.
    ///
    /// # Errors
    /// 429 while another one of the key runs.
    pub(crate) fn begin(self: &Arc<Self>, owner: Owner) -> Result<ExportPlace, ApiError> {
        if owner.is_operator() {
            return Ok(ExportPlace(None));
        }
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(owner.key) {
            return Ok(ExportPlace(Some((Arc::clone(self), owner.key))));
        }
        let message = "Rate limit exceeded: an export of this key is running; wait for it to end";
        Err(share_exceeded("key", "exports", 1).message(message))
    }
}

impl Drop for ExportPlace {
    fn drop(&mut self) {
        if let Some((exports, key)) = &self.0 {
            exports.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_has_one_export_at_a_time() {
        let exports = Arc::new(Exports::default());
        let key = |number: u128| Owner { key: ApiKeyId::from_uuid(uuid::Uuid::from_u128(number)), workspace: None };
        let first = exports.begin(key(1)).unwrap();
        assert_eq!(exports.begin(key(1)).err().map(|error| error.status().as_u16()), Some(429));
        assert!(exports.begin(key(2)).is_ok());
        drop(first);
        assert!(exports.begin(key(1)).is_ok());
        // Several people may be the operator.
        let _other = exports.begin(key(0)).unwrap();
        assert!(exports.begin(key(0)).is_ok());
    }
}
