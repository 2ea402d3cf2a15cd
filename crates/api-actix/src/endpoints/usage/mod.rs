//! Usage and cost: records, sums, and rejected requests.

pub(crate) mod activity;
pub(crate) mod generations;
pub(crate) mod rejections;
pub(crate) mod sums;

use domain::decision::ReadUsageError;
use domain::naming::NameError;

use crate::endpoints::prelude::*;

api_error!(ReadUsageError {
    pass: Store;
    said: OtherKey, OtherWorkspace, EmptyRange, TooManyDays, TooManyRecords, TooManyRows, Cursor;
    with |plain|
        ReadUsageError::Key(name @ NameError::Ambiguous(_))
        | ReadUsageError::Workspace(name @ NameError::Ambiguous(_)) => name.into(),
        error @ (ReadUsageError::Key(_) | ReadUsageError::Workspace(_)) => plain.message(error.to_string());
});

/// The description of a filter by key.
const KEY: &str = "The key's id, hash, a unique prefix of the hash (8 digits or more), or its unique name; of a deleted key \
                   the id or hash. An inference key reads itself only.";
