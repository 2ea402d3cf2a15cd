//! Comparison with scikit-learn and `SciPy`: `tests/statistics/vectors.py` of the repository writes the file.

use serde::Deserialize;

use super::super::*;
use super::{answer, probability, proportion, random};

#[derive(Deserialize)]
struct Vectors {
    binomial_tail: Vec<(usize, f64, usize, f64)>,
    clopper_pearson: Vec<(usize, usize, f64, f64)>,
    mcnemar: Vec<(usize, usize, f64)>,
    labelled: Vec<Labelled>,
}

#[derive(Deserialize)]
struct Labelled {
    scores: Vec<f64>,
    right: Vec<u8>,
    brier: f64,
    log_loss: f64,
    ece: f64,
    reference_mean: f64,
    reference_quantile: f64,
    bins: Vec<(f64, f64)>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn assert_near(found: f64, expected: f64, tolerance: f64, case: &str) {
    assert!((found - expected).abs() <= tolerance, "{case}: {found}, expected {expected}");
}

#[test]
fn binomial_tail_matches_scipy() {
    let cases = vectors().binomial_tail;
    assert!(cases.len() > 200);
    for (trials, alpha, count, expected) in cases {
        let found = binomial_tail(trials, probability(alpha), count);
        assert_near(found, expected, 1e-9 * expected, &format!("{trials} {alpha} {count}"));
    }
}

#[test]
fn clopper_pearson_matches_scipy() {
    for (count, total, lower, upper) in vectors().clopper_pearson {
        let found = proportion(count, total).interval();
        assert_near(found.lower, lower, 1e-11, &format!("lower {count} of {total}"));
        assert_near(found.upper, upper, 1e-11, &format!("upper {count} of {total}"));
    }
}

#[test]
fn mcnemar_matches_scipy() {
    for (first_only, second_only, expected) in vectors().mcnemar {
        let found = PairedErrors { first_only, second_only, none: 3, both: 4 }.mcnemar_p_value();
        assert_near(found, expected, 1e-11, &format!("{first_only} {second_only}"));
    }
}

#[test]
fn losses_and_calibration_match_scikit_learn() {
    for (number, case) in vectors().labelled.into_iter().enumerate() {
        let name = |figure: &str| format!("{figure} of sample {number}");
        let pairs = case.scores.iter().zip(&case.right);
        let answers = random(pairs.map(|(score, right)| answer(*score, *right == 0)));
        assert_near(answers.brier_score().unwrap(), case.brier, 1e-12, &name("Brier score"));
        assert_near(answers.log_loss().unwrap(), case.log_loss, 1e-12, &name("log loss"));
        let bins = answers.reliability_diagram();
        assert_eq!(bins.len(), case.bins.len(), "{}", name("bins"));
        for (bin, (mean_score, accuracy)) in bins.iter().zip(case.bins) {
            assert_near(bin.mean_score, mean_score, 1e-12, &name("mean score"));
            assert_near(bin.accuracy.share().unwrap(), accuracy, 1e-12, &name("accuracy"));
        }
        let error = answers.calibration_error(1).unwrap();
        assert_near(error.observed, case.ece, 1e-12, &name("calibration error"));
        // One thousand draws beside twenty thousand others: five standard errors, and a step of few answers.
        let step = 1.0 / super::super::figure(case.scores.len());
        let mean_tolerance = 5.0 * case.reference_mean / 1000_f64.sqrt();
        assert_near(error.reference_mean, case.reference_mean, mean_tolerance, &name("reference mean"));
        let quantile_tolerance = 0.08 * case.reference_quantile + step.min(0.04);
        assert_near(error.reference_quantile, case.reference_quantile, quantile_tolerance, &name("reference quantile"));
    }
}
