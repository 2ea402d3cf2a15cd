//! The rule that keeps limits.

use super::{LimitExceeded, LimitStatus};
use crate::money::Usd;

/// Whether `amount` more may be reserved: for each limit on its own, what is spent, reserved and wanted must together
/// not exceed it. Of those that refuse, one that waiting cannot help is told before one that it can, and a narrower
/// period before a wider one, in the order of `limits` otherwise. An amount of zero is always admitted.
///
/// # Errors
/// The limit that leaves no room.
pub fn admit(limits: &[LimitStatus], amount: Usd) -> Result<(), LimitExceeded> {
    if amount == Usd::ZERO {
        return Ok(());
    }
    let refusals =
        limits.iter().filter(|standing| !fits(standing, amount)).map(|found| LimitExceeded::by(found, amount));
    match refusals.min_by_key(|refusal| (refusal.waits_for_others(), refusal.reset.is_none())) {
        Some(refusal) => Err(refusal),
        None => Ok(()),
    }
}

/// A sum that leaves the range of money fits nowhere.
fn fits(standing: &LimitStatus, amount: Usd) -> bool {
    let sum = standing.spent.checked_add(standing.reserved).and_then(|used| used.checked_add(amount));
    sum.is_some_and(|sum| sum <= standing.limit)
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
    fn what_fits_to_the_last_picodollar_is_admitted_and_one_more_is_not() {
        assert_eq!(admit(&[], usd(i64::MAX)), Ok(()));
        assert_eq!(admit(&[limit(100, 40, 30)], usd(30)), Ok(()));
        let refused = admit(&[limit(100, 40, 30)], usd(31)).unwrap_err();
        assert_eq!((refused.spent, refused.reserved, refused.wanted), (usd(40), usd(30), usd(31)));
        assert!(refused.waits_for_others());
    }

    #[test]
    fn each_limit_binds_on_its_own() {
        let roomy = limit(1_000, 0, 0);
        assert!(admit(&[roomy, limit(10, 10, 0), roomy], usd(1)).is_err());
        assert_eq!(admit(&[roomy, limit(10, 9, 0), roomy], usd(1)), Ok(()));
    }

    #[test]
    fn a_limit_that_waiting_cannot_help_is_told_first() {
        let (busy, used_up) = (limit(100, 0, 100), limit(50, 50, 0));
        assert_eq!(admit(&[busy, used_up], usd(1)).unwrap_err().limit, usd(50));
        let daily = LimitStatus { reset: Some(ResetInterval::Daily), ..limit(60, 60, 0) };
        assert_eq!(admit(&[used_up, daily], usd(1)).unwrap_err().limit, usd(60));
    }

    #[test]
    fn a_limit_that_was_lowered_below_what_is_spent_refuses_all() {
        assert!(!admit(&[limit(10, 20, 0)], usd(1)).unwrap_err().waits_for_others());
        assert!(admit(&[limit(i64::MAX, i64::MAX - 1, 1)], usd(1)).is_err(), "a sum out of range fits nowhere");
    }

    #[test]
    fn what_a_request_holds_itself_is_not_kept_by_others() {
        let alone = admit(&[limit(100, 10, 60)], usd(31)).unwrap_err().beside(usd(60));
        assert_eq!((alone.spent, alone.reserved, alone.wanted), (usd(10), usd(0), usd(91)));
        assert!(!alone.waits_for_others());
        let among = admit(&[limit(100, 10, 60)], usd(31)).unwrap_err().beside(usd(59));
        assert_eq!((among.reserved, among.wanted), (usd(1), usd(90)));
        assert!(among.waits_for_others());
        assert_eq!(among.beside(usd(i64::MAX)).wanted, usd(i64::MAX));
    }
}
