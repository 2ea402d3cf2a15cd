//! The first entry of a backup: its format, origin and time.

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The version of the archive layout of this program.
pub const FORMAT: u32 = 1;
/// The maximum size of a manifest in bytes.
pub const MAX_BYTES: u64 = 64 * 1024;

/// The description of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the archive layout.
    pub format: u32,
    /// The version of the program that created the backup.
    pub tollgate: String,
    /// The start of the backup.
    pub created_at: DateTime<Utc>,
    /// The identity of the database.
    pub database_id: Uuid,
}

impl Manifest {
    /// Creates the manifest of a new backup.
    pub fn new(created_at: DateTime<Utc>, database_id: Uuid) -> Self {
        Self { format: FORMAT, tollgate: env!("CARGO_PKG_VERSION").to_owned(), created_at, database_id }
    }

    /// Parses the first entry of an archive.
    ///
    /// # Errors
    /// The text is no manifest, or has a newer layout.
    pub fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
            tollgate: String,
        }
        let version: Version = serde_json::from_slice(bytes).context("not a Tollgate backup")?;
        if version.format != FORMAT {
            bail!(
                "the backup has format {}, written by tollgate {}; this program reads format {FORMAT}",
                version.format,
                version.tollgate
            );
        }
        serde_json::from_slice(bytes).context("the description of the backup is damaged")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_accepts_own_manifest_and_rejects_others() {
        let manifest = Manifest::new(DateTime::UNIX_EPOCH, Uuid::from_u128(7));
        let bytes = serde_json::to_vec(&manifest).unwrap();
        assert_eq!(Manifest::parse(&bytes).unwrap(), manifest);
        let error = |bytes: &[u8]| Manifest::parse(bytes).unwrap_err().to_string();
        assert_eq!(error(b"PK"), "not a Tollgate backup");
        assert_eq!(
            error(br#"{"format": 2, "tollgate": "9.1.0"}"#),
            "the backup has format 2, written by tollgate 9.1.0; this program reads format 1"
        );
    }
}
