//! The admission rule of limits.

use super::{LimitExceeded, LimitStatus};
use crate::money::Usd;

/// Checks that `amount` more may be held: for each limit, the spent, held and wanted amounts together must not exceed
/// it. An amount of zero is always admitted.
///
/// # Errors
/// An exceeded limit. Limits that waiting cannot help come first, then periodic limits, then the order of `limits`.
pub fn admit(limits: &[LimitStatus], amount: Usd) -> Result<(), LimitExceeded> {
    if amount == Usd::ZERO {
        return Ok(());
    }
    let exceeded = limits.iter().filter(|status| !fits(status, amount)).map(|found| LimitExceeded::by(found, amount));
    match exceeded.min_by_key(|limit| (limit.waits_for_others(), limit.reset.is_none())) {
        Some(limit) => Err(limit),
        None => Ok(()),
    }
}

/// Returns true if the amount fits into the limit. A sum out of range does not fit.
fn fits(status: &LimitStatus, amount: Usd) -> bool {
    let sum = status.spent.checked_add(status.reserved).and_then(|used| used.checked_add(amount));
    sum.is_some_and(|sum| sum <= status.limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{BudgetScope, ResetInterval};

    fn limit(limit: i64, spent: i64, reserved: i64) -> LimitStatus {
        LimitStatus {
            scope: BudgetScope::Key,
            guardrail_id: None,
            is_credit: false,
            limit: Usd::from_pico(limit),
            reset: None,
            spent: Usd::from_pico(spent),
            reserved: Usd::from_pico(reserved),
            resets_at: None,
        }
    }

    fn usd(pico: i64) -> Usd {
        Usd::from_pico(pico)
    }

    #[test]
    fn admit_is_exact_to_the_picodollar() {
        assert_eq!(admit(&[], usd(i64::MAX)), Ok(()));
        assert_eq!(admit(&[limit(100, 40, 30)], usd(30)), Ok(()));
        let refused = admit(&[limit(100, 40, 30)], usd(31)).unwrap_err();
        assert_eq!((refused.spent, refused.reserved, refused.wanted), (usd(40), usd(30), usd(31)));
        assert!(refused.waits_for_others());
    }

    #[test]
    fn each_limit_binds_independently() {
        let roomy = limit(1_000, 0, 0);
        assert!(admit(&[roomy, limit(10, 10, 0), roomy], usd(1)).is_err());
        assert_eq!(admit(&[roomy, limit(10, 9, 0), roomy], usd(1)), Ok(()));
    }

    #[test]
    fn admit_reports_limit_that_waiting_cannot_help_first() {
        let (busy, used_up) = (limit(100, 0, 100), limit(50, 50, 0));
        assert_eq!(admit(&[busy, used_up], usd(1)).unwrap_err().limit, usd(50));
        let daily = LimitStatus { reset: Some(ResetInterval::Daily), ..limit(60, 60, 0) };
        assert_eq!(admit(&[used_up, daily], usd(1)).unwrap_err().limit, usd(60));
    }

    #[test]
    fn limit_below_spent_amount_rejects_every_hold() {
        assert!(!admit(&[limit(10, 20, 0)], usd(1)).unwrap_err().waits_for_others());
        assert!(admit(&[limit(i64::MAX, i64::MAX - 1, 1)], usd(1)).is_err(), "a sum out of range fits nowhere");
    }

    #[test]
    fn own_hold_does_not_count_as_held_by_others() {
        let alone = admit(&[limit(100, 10, 60)], usd(31)).unwrap_err().including_held(usd(60));
        assert_eq!((alone.spent, alone.reserved, alone.wanted), (usd(10), usd(0), usd(91)));
        assert!(!alone.waits_for_others());
        let among = admit(&[limit(100, 10, 60)], usd(31)).unwrap_err().including_held(usd(59));
        assert_eq!((among.reserved, among.wanted), (usd(1), usd(90)));
        assert!(among.waits_for_others());
        assert_eq!(among.including_held(usd(i64::MAX)).wanted, usd(i64::MAX));
    }
}
