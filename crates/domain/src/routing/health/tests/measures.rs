use super::*;
use crate::routing::health::measurements::{DecayingMean, RankOrder, WindowedHistogram};
use proptest::prelude::*;

fn answer(latency: Duration, tokens: u64) -> Observation {
    Observation::Succeeded { latency, tokens }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn close(left: Duration, right: Duration) -> bool {
    left.abs_diff(right) <= right / 32 + Duration::from_micros(1)
}

#[test]
fn view_has_no_measurements_before_first_answer() {
    let mut fixture = EndpointFixture::new();
    fixture.attempts(3, status(500)).attempt(Observation::Neutral);
    let view = fixture.view();
    assert_eq!((view.latency, view.percentiles, view.p95, view.throughput), (None, None, None, None));
    assert_eq!((view.answers_in_window, view.observations), (0, 3));
}

#[test]
fn average_latency_halves_weight_per_half_life() {
    let mut fixture = EndpointFixture::new();
    fixture.attempt(answer(millis(400), 1)).wait(secs(60)).attempt(answer(millis(100), 1));
    // (400 / 2 + 100) / (1 / 2 + 1)
    let latency = fixture.view().latency.unwrap();
    assert!(latency.abs_diff(millis(200)) < Duration::from_nanos(10), "{latency:?}");
    fixture.wait(secs(1_000_000));
    assert_eq!(fixture.view().latency, Some(latency), "time alone does not change it");
    fixture.attempt(answer(millis(7), 1));
    assert!(fixture.view().latency.unwrap().abs_diff(millis(7)) < Duration::from_nanos(10), "the past is gone");
}

#[test]
fn average_latency_uses_only_latest_answers_when_half_life_is_zero() {
    let mut fixture = EndpointFixture::with(HealthPolicy { half_life: Duration::ZERO, ..HealthPolicy::default() });
    fixture.attempt(answer(millis(10), 1)).attempt(answer(millis(30), 1));
    assert_eq!(fixture.view().latency, Some(millis(20)));
    fixture.wait(Duration::from_nanos(1)).attempt(answer(millis(90), 1));
    assert_eq!(fixture.view().latency, Some(millis(90)));
}

#[test]
fn latency_percentiles_are_upper_bounds() {
    let mut fixture = EndpointFixture::new();
    for latency in 1..=100 {
        fixture.attempt(answer(millis(latency * 10), 0));
    }
    let view = fixture.view();
    let found = view.percentiles.unwrap();
    for (value, exact) in
        [(found.p50, 500), (found.p75, 750), (found.p90, 900), (view.p95.unwrap(), 950), (found.p99, 990)]
    {
        assert!(close(value, millis(exact)), "{value:?} for {exact} ms");
    }
    assert_eq!((view.answers_in_window, view.throughput), (100, None), "no tokens were counted");
}

#[test]
fn throughput_percentiles_are_lower_bounds() {
    let mut fixture = EndpointFixture::new();
    for tokens in 1..=100 {
        // So many tokens in half a second.
        fixture.attempt(answer(millis(500), tokens));
    }
    let found = fixture.view().throughput.unwrap();
    for (value, exact) in [(found.p50, 102_000), (found.p75, 52_000), (found.p90, 22_000), (found.p99, 4_000)] {
        assert!(value.abs_diff(exact) * 32 <= exact, "{value} for {exact}");
    }
}

#[test]
fn each_percentile_changes_at_its_share_of_slow_answers() {
    for slow in 0..=100 {
        let mut fixture = EndpointFixture::new();
        for number in 0..100 {
            // Slow is ten times as long, and a tenth of the throughput.
            fixture.attempt(answer(if number < slow { millis(1000) } else { millis(100) }, 100));
        }
        let view = fixture.view();
        let (latency, throughput) = (view.percentiles.unwrap(), view.throughput.unwrap());
        let latencies = [latency.p50, latency.p75, latency.p90, view.p95.unwrap(), latency.p99];
        assert_eq!(latencies.map(|value| value > millis(500)), [50, 25, 10, 5, 1].map(|share| slow > share), "{slow}");
        let throughputs = [throughput.p50, throughput.p75, throughput.p90, throughput.p99];
        assert_eq!(throughputs.map(|value| value < 500_000), [50, 25, 10, 1].map(|share| slow > share), "{slow}");
    }
}

#[test]
fn measurements_above_maximum_count_as_maximum() {
    let mut fixture = EndpointFixture::new();
    fixture.attempt(answer(Duration::from_secs(1), 1 << 60)).attempt(answer(Duration::ZERO, u64::MAX));
    assert!(fixture.view().throughput.unwrap().p99 > 4_000_000_000);
    fixture.attempts(98, answer(Duration::MAX, 1));
    assert!(fixture.view().percentiles.unwrap().p50 > Duration::from_mins(69));
}

#[test]
fn answer_leaves_window_between_five_sixths_and_its_full_length() {
    for start in 0..120 {
        let mut fixture = EndpointFixture::new();
        fixture.now = secs(start);
        fixture.attempt(answer(millis(10), 1)).wait(secs(250));
        assert_eq!(fixture.view().answers_in_window, 1, "{start}");
        fixture.wait(secs(50));
        assert_eq!((fixture.view().answers_in_window, fixture.view().percentiles), (0, None), "{start}");
        assert_eq!(fixture.view().throughput, None, "{start}");
    }
}

#[test]
fn window_reuses_slots_when_it_slides() {
    let mut fixture = EndpointFixture::new();
    for round in 1..40 {
        fixture.attempt(answer(millis(round), 1)).wait(secs(50));
        assert_eq!(fixture.view().answers_in_window, round.min(5));
    }
    fixture.wait(secs(10_000)).attempt(answer(millis(1), 1));
    assert_eq!(fixture.view().answers_in_window, 1);
}

#[test]
fn measurements_accept_earlier_clock_reading() {
    let mut fixture = EndpointFixture::new();
    fixture.attempt(answer(millis(10), 1)).attempt(status(500));
    let newest = fixture.now;
    fixture.now = secs(1);
    fixture.attempt(answer(millis(30), 1)).attempt(status(500));
    assert_eq!((fixture.view().answers_in_window, fixture.throttling().accept_rate), (2, Some(0.5)));
    fixture.now = newest;
    assert_eq!((fixture.view().answers_in_window, fixture.view().latency), (2, Some(millis(20))));
    fixture.attempt(answer(millis(50), 1));
    assert_eq!(fixture.view().latency, Some(millis(30)), "nothing has aged");
}

/// Nearest rank, by sorting.
fn exact(sorted: &[u64], percentage: usize, order: RankOrder) -> u64 {
    let rank = (sorted.len() * percentage).div_ceil(100).max(1);
    if order == RankOrder::Ascending { sorted[rank - 1] } else { sorted[sorted.len() - rank] }
}

fn any_value() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_u64, 0..100_000_u64, 0..=u64::from(u32::MAX)]
}

proptest! {
    #[test]
    fn percentiles_match_sorted_values_within_resolution(
        values in proptest::collection::vec((any_value(), 0..40_u64), 1..300),
        percentages in [1..=100_u64, 1..=100_u64, 1..=100_u64],
        is_descending in any::<bool>(),
    ) {
        let order = if is_descending { RankOrder::Descending } else { RankOrder::Ascending };
        let mut percentages = percentages;
        percentages.sort_unstable();
        let mut histogram = WindowedHistogram::default();
        let mut now = secs(77);
        let mut recorded: Vec<(u64, Duration)> = Vec::new();
        for (value, pause) in values {
            now += secs(pause);
            histogram.record(value, secs(300), now);
            recorded.push((value, now));
        }
        let slot = |at: Duration| at.as_secs() / 50;
        let mut live: Vec<u64> =
            recorded.iter().filter(|(_, at)| slot(now) - slot(*at) < 6).map(|(value, _)| *value).collect();
        live.sort_unstable();
        let (found, total) = histogram.percentiles(percentages, order, secs(300), now).unwrap();
        prop_assert_eq!(total, live.len() as u64);
        for (percentage, value) in percentages.into_iter().zip(found) {
            let exact = exact(&live, usize::try_from(percentage).unwrap(), order);
            prop_assert!(value.abs_diff(exact) * 32 <= exact, "p{} is {}, exactly {}", percentage, value, exact);
        }
    }

    #[test]
    fn mean_equals_weighted_sum(
        values in proptest::collection::vec((0.0..1000.0_f64, 0..90_000_u64), 1..60),
    ) {
        let mut mean = DecayingMean::default();
        let mut now = secs(3);
        let mut added: Vec<(f64, Duration)> = Vec::new();
        for (value, pause) in values {
            now += millis(pause);
            mean.add(value, secs(60), now);
            added.push((value, now));
        }
        let weight = |at: Duration| 0.5_f64.powf(now.checked_sub(at).unwrap().as_secs_f64() / 60.0);
        let weights: f64 = added.iter().map(|(_, at)| weight(*at)).sum();
        let sum: f64 = added.iter().map(|(value, at)| value * weight(*at)).sum();
        prop_assert!((mean.mean().unwrap() - sum / weights).abs() < 1e-9);
    }
}
