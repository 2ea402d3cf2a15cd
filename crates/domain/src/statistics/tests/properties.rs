//! Properties for any counts and any labelled answers.

use proptest::prelude::*;

use super::super::*;
use super::{probability, promise, proportion, random};

/// Scores with and without rounding, and answers without a score.
fn answers() -> impl Strategy<Value = Vec<LabelledAnswer>> {
    let score = prop_oneof![
        1 => Just(None),
        4 => (0_u8..=100).prop_map(|hundredths| Some(f64::from(hundredths) / 100.0)),
        4 => (0.0..=1.0).prop_map(Some),
    ];
    let answer =
        (score, any::<bool>()).prop_map(|(score, is_error)| LabelledAnswer { score: score.map(probability), is_error });
    prop::collection::vec(answer, 0..120)
}

/// Answers whose errors are rare at high scores.
fn decent_answers() -> impl Strategy<Value = Vec<LabelledAnswer>> {
    let answer = (0_u8..=50, 0.0..1.0).prop_map(|(step, draw)| {
        let score = 0.5 + f64::from(step) / 100.0;
        LabelledAnswer { score: Some(probability(score)), is_error: draw > score + 0.05 }
    });
    prop::collection::vec(answer, 100..900)
}

/// A total and a smaller count.
fn count_below_total() -> impl Strategy<Value = (usize, usize)> {
    (1_usize..3000).prop_flat_map(|total| (Just(total), 0..total))
}

proptest! {
    #[test]
    fn binomial_tail_is_monotone((trials, count) in count_below_total(), first in 0.0..=1.0, second in 0.0..=1.0) {
        let (low, high) = (probability(f64::min(first, second)), probability(f64::max(first, second)));
        let tail = binomial_tail(trials, low, count);
        prop_assert!((0.0..=1.0).contains(&tail));
        prop_assert!(binomial_tail(trials, low, count + 1) >= tail - 1e-12);
        prop_assert!(binomial_tail(trials, high, count) <= tail + 1e-12);
        prop_assert!(binomial_tail(trials + 1, low, count) <= tail + 1e-12);
    }

    #[test]
    fn interval_contains_share_and_moves_with_count((total, count) in count_below_total()) {
        let (here, next) = (proportion(count, total).interval(), proportion(count + 1, total).interval());
        let share = proportion(count, total).share().unwrap();
        prop_assert!(0.0 <= here.lower && here.lower <= share && share <= here.upper && here.upper <= 1.0);
        prop_assert!(here.lower < next.lower && here.upper <= next.upper);
    }

    #[test]
    fn order_of_answers_is_irrelevant(
        (answers, shuffled) in answers().prop_flat_map(|answers| (Just(answers.clone()), Just(answers).prop_shuffle())),
    ) {
        let (left, right) = (random(answers), random(shuffled));
        // Equal to the last bit.
        prop_assert_eq!(&left, &right);
        prop_assert_eq!(left.brier_score(), right.brier_score());
        prop_assert_eq!(left.log_loss(), right.log_loss());
        prop_assert_eq!(left.reliability_diagram(), right.reliability_diagram());
        prop_assert_eq!(left.risk_coverage_curve(), right.risk_coverage_curve());
        prop_assert_eq!(left.accuracy(), right.accuracy());
    }

    #[test]
    fn bins_and_curve_contain_each_scored_answer_once(answers in answers()) {
        let answers = random(answers);
        let scored = answers.scored().len();
        let bins = answers.reliability_diagram();
        prop_assert_eq!(bins.iter().map(|bin| bin.accuracy.total()).sum::<usize>(), scored);
        prop_assert!(bins.len() <= 10 && bins.is_sorted_by(|left, right| left.mean_score < right.mean_score));
        let curve = answers.risk_coverage_curve();
        prop_assert!(curve.is_sorted_by(|left, right| left.coverage.count() < right.coverage.count()));
        prop_assert_eq!(curve.last().map_or(0, |point| point.risk.total()), scored);
    }

    #[test]
    fn each_stricter_tested_candidate_passes_as_well(answers in decent_answers(), pilot in decent_answers()) {
        let (answers, promise) = (random(answers), promise(0.1, 0.1));
        let scores: Vec<Option<Probability>> = pilot.iter().map(|answer| answer.score).collect();
        let candidates = ThresholdCandidates::from_scores(scores.iter().copied()).unwrap();
        let found = find_threshold(&promise, &candidates, &answers);
        // The thresholds at each twentieth of the other scores, by their definition.
        let mut sorted: Vec<Probability> = scores.into_iter().flatten().collect();
        sorted.sort_by(|left, right| right.cmp(left));
        let expected = |threshold: Probability| sorted.iter().filter(|score| **score >= threshold).count() * answers.count();
        let mut tested: Vec<Probability> =
            (1..=20).map(|part| sorted[(sorted.len() * part).div_ceil(20) - 1]).collect();
        tested.dedup();
        tested.retain(|threshold| expected(*threshold) >= 80 * sorted.len());
        let passes = |threshold: &Probability| {
            let risk = answers.risk_coverage_at(*threshold).risk;
            binomial_tail(risk.total(), promise.alpha(), risk.count()) <= promise.delta().get()
        };
        let passed = tested.iter().take_while(|threshold| passes(threshold)).last();
        let found = match found {
            ThresholdFinding::Tested(found) => Some(found.point.threshold),
            _ => None,
        };
        prop_assert_eq!(found.as_ref(), passed);
    }

    #[test]
    fn needed_labels_are_the_smallest_that_pass(errors in 0_usize..6, total in 60_usize..200) {
        let answers = super::of_equal_score(0.9, errors, total);
        let promise = promise(0.05, 0.01);
        if let ThresholdFinding::TooFewLabels(few) = find_threshold(&promise, &super::candidates(&[0.9]), &answers) {
            let passes = |labels: &usize| {
                binomial_tail(*labels, promise.alpha(), (labels * errors).div_ceil(total)) <= promise.delta().get()
            };
            prop_assert_eq!(few.needed(), (1..=3000).find(passes).or(few.needed().filter(|needed| *needed > 3000)));
        }
    }
}
