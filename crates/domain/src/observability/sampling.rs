//! Sampling of requests for destinations.

use sha2::{Digest, Sha256};

use super::TraceMetadata;
use crate::usage::UsageRecord;

/// The unit of sampling rates: ten-thousandths.
pub const SAMPLING_PARTS: u16 = 10_000;

/// The sampling position of a group of requests. It depends on the group's name alone, so every process and every
/// destination samples alike: the sessions of a lower rate are a subset of those of a higher rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledGroup(u64);

impl SampledGroup {
    /// Returns the group with this name.
    pub fn of(name: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        let first = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Self(first % u64::from(SAMPLING_PARTS))
    }

    /// Returns the group that a request is sampled with: its session, else its trace, else itself.
    pub fn of_request(record: &UsageRecord) -> Self {
        match &record.session_id {
            Some(session) => Self::of(session),
            None => Self::of(&TraceMetadata::parse(record.trace.as_ref()).trace_id(&record.id)),
        }
    }

    /// Returns true if the group is sampled at this rate.
    pub fn is_sampled_at(self, ten_thousandths: u16) -> bool {
        self.0 < u64::from(ten_thousandths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::DecisionId;
    use crate::json::Json;
    use crate::testing::SequentialIds;
    use crate::testing::contract::usage_record;

    fn share(ten_thousandths: u16) -> usize {
        (0..20_000).filter(|n| SampledGroup::of(&format!("session {n}")).is_sampled_at(ten_thousandths)).count()
    }

    #[test]
    fn sampling_matches_rate_and_full_rate_includes_all() {
        assert_eq!(share(10_000), 20_000);
        let tenth = share(1_000);
        assert!((1_800..=2_200).contains(&tenth), "{tenth} of 2,000");
        assert!(share(1) <= 8);
    }

    #[test]
    fn rate_zero_samples_no_group() {
        assert_eq!(share(0), 0);
        let first =
            (0..200_000).map(|n| SampledGroup::of(&n.to_string())).find(|group| group.is_sampled_at(1)).unwrap();
        assert!(!first.is_sampled_at(0), "not even the first group");
    }

    #[test]
    fn higher_rate_includes_groups_of_lower_rate() {
        for number in 0..2_000 {
            let group = SampledGroup::of(&number.to_string());
            assert_eq!(group, SampledGroup::of(&number.to_string()), "always alike");
            assert!(!group.is_sampled_at(500) || group.is_sampled_at(2_500));
        }
    }

    #[test]
    fn request_is_sampled_by_session_else_by_trace() {
        let in_session = |session: &str, number| UsageRecord {
            session_id: Some(session.to_owned()),
            id: DecisionId::from_uuid(SequentialIds::uuid(number)),
            ..usage_record(1, 7)
        };
        assert_eq!(SampledGroup::of_request(&in_session("a", 1)), SampledGroup::of_request(&in_session("a", 2)));
        let alone = |trace: &str, number| UsageRecord {
            session_id: None,
            trace: Some(Json::parse(trace).unwrap()),
            ..in_session("", number)
        };
        assert_eq!(
            SampledGroup::of_request(&alone(r#"{"trace_id":"t"}"#, 1)),
            SampledGroup::of_request(&alone(r#"{"trace_id":"t"}"#, 2))
        );
        assert_ne!(SampledGroup::of_request(&alone("{}", 1)), SampledGroup::of_request(&alone("{}", 2)));
    }
}
