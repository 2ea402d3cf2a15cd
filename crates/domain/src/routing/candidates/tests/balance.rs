//! Balancing by price: exact frequencies over an even grid of draws.

use super::*;
use rstest::rstest;

/// Counts how often each candidate comes first, over `cells` evenly spaced draws.
fn firsts(fixture: &mut SelectionFixture, cells: u64) -> Vec<u64> {
    let all = names(&fixture.models[0].0);
    let mut counts = vec![0; all.len()];
    for cell in 0..cells {
        let middle = (u128::from(cell) * 2 + 1) * (1_u128 << 63) / u128::from(cells);
        fixture.draws = vec![u64::try_from(middle).unwrap()];
        let first = fixture.names().remove(0);
        counts[all.iter().position(|name| *name == first).unwrap()] += 1;
    }
    counts
}

#[rstest]
#[case::one_to_two(&["1e-6", "2e-6"], &[80, 20], 100)]
#[case::in_any_order(&["2e-6", "1e-6"], &[20, 80], 100)]
#[case::three(&["1", "2", "3"], &[36, 9, 4], 49)]
#[case::tiny_prices(&["1e-24", "2e-24"], &[80, 20], 100)]
#[case::alike(&["5e-7", "0.0000005"], &[50, 50], 100)]
#[case::free_takes_all(&["0", "1e-24"], &[100, 0], 100)]
#[case::free_ones_share(&["0", "1e-6", "0.0"], &[50, 0, 50], 100)]
#[case::far_dearer(&["1e-12", "1"], &[100, 0], 100)]
fn balance_draws_first_candidate_by_inverse_square_of_price(
    #[case] prices: &[&str],
    #[case] expected: &[u64],
    #[case] cells: u64,
) {
    let slug = |place: usize| format!("p{place}");
    let candidates = prices.iter().enumerate().map(|(place, price)| candidate(place, &slug(place), price)).collect();
    assert_eq!(firsts(&mut SelectionFixture::new(candidates), cells), expected);
}

#[test]
fn balance_orders_other_candidates_by_price() {
    let mut fixture = SelectionFixture::of_three();
    fixture.draws = vec![u64::MAX];
    assert_eq!(fixture.names(), ["a", "c", "b"]);
    fixture.draws = vec![0];
    assert_eq!(fixture.names(), ["c", "b", "a"]);
}

#[test]
fn balance_orders_recently_failed_candidates_last() {
    let mut fixture = SelectionFixture::of_three();
    let policy = HealthPolicy::default();
    fixture.report(2, failed(), NOW.saturating_sub(policy.recent_failure) + Duration::from_nanos(1));
    assert_eq!(firsts(&mut fixture, 13), [4, 9, 0]);
    assert_eq!(fixture.names().last().unwrap(), "c");
    fixture.report(1, failed(), NOW);
    fixture.report(0, failed(), NOW);
    assert_eq!(fixture.names(), ["c", "b", "a"], "ordered by price when all failed recently");
}

#[test]
fn balance_ignores_failures_older_than_recent_period() {
    let mut fixture = SelectionFixture::of_three();
    fixture.report(2, failed(), NOW.saturating_sub(HealthPolicy::default().recent_failure));
    assert_eq!(firsts(&mut fixture, 49), [4, 9, 36]);
}

#[test]
fn balance_is_deterministic_for_same_draws() {
    for draw in [0, 1, u64::MAX / 3, u64::MAX - 1, u64::MAX] {
        let mut fixture = SelectionFixture::of_three();
        fixture.draws = vec![draw];
        assert_eq!(fixture.names(), fixture.names());
    }
}

#[test]
fn balance_draws_nothing_for_single_candidate() {
    let mut fixture = SelectionFixture::new(vec![candidate(0, "a", "1e-6")]);
    fixture.models.push((SelectionFixture::of_three().models.remove(0).0, None));
    // The only draw is for the second model.
    fixture.draws = vec![u64::MAX];
    assert_eq!(fixture.names(), ["a", "a", "c", "b"]);
}
