//! Closed sets of values that several bodies have.

use serde::Serialize;
use utoipa::ToSchema;

/// A budget period in UTC; weeks start on Monday.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResetInterval {
    Daily,
    Weekly,
    Monthly,
}

impl From<domain::budget::ResetInterval> for ResetInterval {
    fn from(interval: domain::budget::ResetInterval) -> Self {
        match interval {
            domain::budget::ResetInterval::Daily => Self::Daily,
            domain::budget::ResetInterval::Weekly => Self::Weekly,
            domain::budget::ResetInterval::Monthly => Self::Monthly,
        }
    }
}

/// The action on a match.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FilterAction {
    Block,
    Redact,
    Flag,
}

impl From<domain::usage::FilterAction> for FilterAction {
    fn from(action: domain::usage::FilterAction) -> Self {
        match action {
            domain::usage::FilterAction::Block => Self::Block,
            domain::usage::FilterAction::Redact => Self::Redact,
            domain::usage::FilterAction::Flag => Self::Flag,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::to_value;

    #[test]
    fn values_are_written_with_the_names_of_all_interfaces() {
        for interval in domain::budget::ResetInterval::ALL {
            assert_eq!(to_value(ResetInterval::from(interval)).unwrap(), interval.as_str());
        }
        for action in domain::usage::FilterAction::ALL {
            assert_eq!(to_value(FilterAction::from(action)).unwrap(), action.as_str());
        }
    }
}
