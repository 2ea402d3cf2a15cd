//! Closed forms, edge cases and rules. The folder has the comparison with other libraries, and the properties.

use std::num::NonZeroU32;

use super::*;
use crate::error::ErrorKind;
use crate::question::AnswerValue;

mod properties;
mod vectors;

fn probability(number: f64) -> Probability {
    Probability::new(number).unwrap()
}

fn promise(alpha: f64, delta: f64) -> Promise {
    Promise::new(probability(alpha), probability(delta), NonZeroU32::MIN).unwrap()
}

fn near(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-12
}

fn answer(score: f64, is_error: bool) -> LabelledAnswer {
    LabelledAnswer { score: Some(probability(score)), is_error }
}

fn random(answers: impl IntoIterator<Item = LabelledAnswer>) -> LabelledAnswers {
    LabelledAnswers::new(LabelSelection::Random, answers)
}

/// Returns answers with one score, of which some are wrong.
fn of_equal_score(score: f64, errors: usize, total: usize) -> LabelledAnswers {
    random((0..total).map(|index| answer(score, index < errors)))
}

fn candidates(scores: &[f64]) -> ThresholdCandidates {
    ThresholdCandidates::from_scores(scores.iter().map(|score| Some(probability(*score)))).unwrap()
}

fn proportion(count: usize, total: usize) -> Proportion {
    Proportion::new(count, total).unwrap()
}

#[test]
fn probability_rejects_numbers_outside_zero_to_one() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e-9, 1.0 + 1e-9] {
        let error = Probability::new(number).unwrap_err();
        assert!(error.to_string().contains("must be a number from 0 to 1"), "{error}");
    }
    assert!(Probability::new(1.0).is_ok() && Probability::new(-0.0) == Probability::new(0.0));
    assert!(probability(0.3) < probability(0.4));
}

#[test]
fn decision_follows_kind_of_question() {
    let noul = |probability| AnswerValue::Noul { probability };
    assert_eq!(Decision::from_answer(&noul(0.5)), Some(Decision::Noul(true)));
    assert_eq!(Decision::from_answer(&noul(0.49)), Some(Decision::Noul(false)));
    for (probability, score) in [(0.07, 0.93), (0.93, 0.93), (0.3, 0.7), (0.5, 0.5), (0.0, 1.0), (1e-17, 1.0)] {
        assert_eq!(largest_probability(&noul(probability)), Probability::new(score).ok(), "{probability}");
    }
    let choice = AnswerValue::Choice { chosen: 2, probabilities: None, confidence: None };
    assert_eq!(Decision::from_answer(&choice), Some(Decision::Choice(2)));
    let levels = Some(vec![0.1, 0.5, 0.4]);
    let score = AnswerValue::Score { score: 1.3, probabilities: levels, confidence: None };
    assert_eq!(Decision::from_answer(&score), Some(Decision::Score(1)));
    let without_levels = AnswerValue::Score { score: 1.3, probabilities: None, confidence: None };
    for value in [without_levels, AnswerValue::Box, AnswerValue::Refusal, AnswerValue::Unanswered(ErrorKind::TimedOut)]
    {
        assert_eq!(Decision::from_answer(&value), None);
        assert_eq!(largest_probability(&value), None);
    }
}

#[test]
fn error_of_levels_exceeds_tolerance() {
    let is_error = |tolerance| Decision::Score(3).is_error(Decision::Score(1), tolerance);
    assert!(is_error(0) && is_error(1) && !is_error(2));
    assert!(Decision::Choice(3).is_error(Decision::Choice(1), 5));
    assert!(Decision::Noul(true).is_error(Decision::Choice(1), 0));
    assert!(!Decision::Noul(true).is_error(Decision::Noul(true), 0));
}

#[test]
fn score_is_largest_probability() {
    assert_eq!(largest_probability(&AnswerValue::Noul { probability: 0.2 }), Some(probability(0.8)));
    assert_eq!(largest_probability(&AnswerValue::Noul { probability: f64::NAN }), None);
    let choice = |probabilities| AnswerValue::Choice { chosen: 0, probabilities, confidence: Some(0.9) };
    assert_eq!(largest_probability(&choice(Some(vec![0.6, 0.3, 0.1]))), Some(probability(0.6)));
    assert_eq!(largest_probability(&choice(None)), None);
}

#[test]
fn minimum_labels_are_closed_forms() {
    for (alpha, labels) in [(0.1, 22), (0.05, 45), (0.02, 114), (0.01, 230)] {
        let promise = promise(alpha, 0.1);
        assert_eq!(promise.minimum_labels(), labels);
        assert!(binomial_tail(labels, promise.alpha(), 0) <= 0.1);
        assert!(binomial_tail(labels - 1, promise.alpha(), 0) > 0.1);
    }
}

#[test]
fn promise_divides_delta_among_questions() {
    let five = NonZeroU32::new(5).unwrap();
    let shared = Promise::new(probability(0.05), probability(0.1), five).unwrap();
    assert!(near(shared.alpha().get(), 0.05) && near(shared.delta().get(), 0.02));
    assert!(shared.minimum_labels() > promise(0.05, 0.1).minimum_labels());
    for (alpha, delta) in [(0.0, 0.1), (1.0, 0.1), (0.1, 0.0), (0.1, 1.0)] {
        assert_eq!(Promise::new(probability(alpha), probability(delta), five), None);
    }
}

#[test]
fn binomial_tail_has_its_limits() {
    assert!(near(binomial_tail(0, probability(0.3), 0), 1.0));
    assert!(near(binomial_tail(5, probability(0.0), 0), 1.0));
    assert!(near(binomial_tail(5, probability(1.0), 4), 0.0));
    assert!(near(binomial_tail(5, probability(0.3), 9), 1.0));
    assert!(near(binomial_tail(2, probability(0.5), 0), 0.25));
}

#[test]
fn proportion_without_total_says_nothing() {
    assert_eq!(Proportion::new(2, 1), None);
    assert_eq!(proportion(0, 0).share(), None);
    assert_eq!(proportion(0, 0).interval(), Interval { lower: 0.0, upper: 1.0 });
    // All and none: the other limit is 0.025^(1/n).
    let all = proportion(20, 20).interval();
    assert!(near(all.lower, 0.025_f64.powf(1.0 / 20.0)) && near(all.upper, 1.0));
    let none = proportion(0, 20).interval();
    assert!(near(none.lower, 0.0) && near(none.upper, 1.0 - all.lower));
}

#[test]
fn lower_limit_is_one_sided() {
    let limit = proportion(30, 200).lower_limit(probability(0.01));
    // The probability of at least 30 under the limit is 0.01.
    assert!(near(1.0 - binomial_tail(200, probability(limit), 29), 0.01));
    assert!(limit < 0.15 && limit > 0.09);
}

#[test]
fn figures_of_no_answers_are_absent() {
    let none = random([]);
    assert_eq!(none.accuracy(), proportion(0, 0));
    assert_eq!((none.brier_score(), none.log_loss(), none.calibration_error(1)), (None, None, None));
    assert!(none.risk_coverage_curve().is_empty() && none.reliability_diagram().is_empty());
    assert_eq!(none.most_confident_fifth(), proportion(0, 0));
}

#[test]
fn answers_without_score_count_for_accuracy_and_coverage() {
    let unscored = |is_error| LabelledAnswer { score: None, is_error };
    let answers = random([answer(0.9, false), answer(0.6, true), unscored(true), unscored(false)]);
    assert_eq!(answers.accuracy(), proportion(2, 4));
    let all = answers.risk_coverage_at(probability(0.0));
    assert_eq!((all.coverage, all.risk), (proportion(2, 4), proportion(1, 2)));
    assert!(near(answers.brier_score().unwrap(), f64::midpoint(0.01, 0.36)));
    let none = random([unscored(false), unscored(false)]);
    assert_eq!(none.most_confident_fifth(), proportion(0, 0));
}

#[test]
fn risk_coverage_curve_has_a_point_for_each_score() {
    let answers = random([answer(0.9, false), answer(0.7, true), answer(0.9, true), answer(0.5, false)]);
    let curve: Vec<_> = answers.risk_coverage_curve();
    let points: Vec<_> = curve.iter().map(|point| (point.threshold.get(), point.coverage, point.risk)).collect();
    let expected = [
        (0.9, proportion(2, 4), proportion(1, 2)),
        (0.7, proportion(3, 4), proportion(2, 3)),
        (0.5, proportion(4, 4), proportion(2, 4)),
    ];
    assert_eq!(points, expected);
    assert!(curve.iter().all(|point| *point == answers.risk_coverage_at(point.threshold)));
}

#[test]
fn most_confident_fifth_includes_equal_scores() {
    let fifth = |scores: &[f64]| random(scores.iter().map(|score| answer(*score, true))).most_confident_fifth().total();
    assert_eq!(fifth(&[0.9, 0.8, 0.7, 0.6, 0.5]), 1);
    assert_eq!(fifth(&[0.9, 0.8, 0.7, 0.6, 0.5, 0.4]), 2);
    assert_eq!(fifth(&[0.9, 0.9, 0.9, 0.6, 0.5]), 3);
}

#[test]
fn log_loss_is_finite_at_probabilities_zero_and_one() {
    let loss = random([answer(1.0, true)]).log_loss().unwrap();
    assert!(near(loss, -(0.001_f64.ln())));
    assert!(near(random([answer(0.0, false)]).log_loss().unwrap(), loss));
    assert!(near(random([answer(0.0, true)]).log_loss().unwrap(), -(0.999_f64.ln())));
}

#[test]
fn reliability_bins_have_equal_mass_and_keep_equal_scores() {
    let bins = |scores: &mut dyn Iterator<Item = f64>| {
        let answers = random(scores.map(|score| answer(score, false)));
        answers.reliability_diagram().iter().map(|bin| bin.accuracy.total()).collect::<Vec<_>>()
    };
    assert_eq!(bins(&mut (0..100).map(|index| f64::from(index) / 100.0)), [10; 10]);
    assert_eq!(bins(&mut std::iter::repeat_n(0.8, 50)), [50]);
    assert_eq!(bins(&mut [0.5, 0.6, 0.7].into_iter()), [1, 1, 1]);
}

/// Returns answers with the scores of a usual model; right answers are spread as the scores say.
fn calibrated(total: u32) -> LabelledAnswers {
    let mut owed = 0.5;
    random((0..total).map(|index| {
        let score = 0.5 + 0.5 * ((f64::from(index) + 0.5) / f64::from(total)).powf(1.0 / 2.2);
        owed += 1.0 - score;
        let is_error = owed >= 1.0;
        owed -= f64::from(u8::from(is_error));
        answer(score, is_error)
    }))
}

#[test]
fn calibration_error_of_calibrated_scores_is_not_distinguishable() {
    for (total, mean) in [(200, 0.057), (1000, 0.025)] {
        let error = calibrated(total).calibration_error(7).unwrap();
        assert!((error.reference_mean - mean).abs() < 0.002, "{total}: {error:?}");
        assert!(error.reference_quantile > error.reference_mean && !error.is_distinguishable());
    }
    let wrong = of_equal_score(0.9, 60, 200).calibration_error(7).unwrap();
    assert!(near(wrong.observed, 0.2) && wrong.is_distinguishable());
    let at_quantile = CalibrationError { observed: 0.04, reference_mean: 0.02, reference_quantile: 0.04 };
    assert!(!at_quantile.is_distinguishable());
}

#[test]
fn calibration_error_repeats_with_seed() {
    let answers = calibrated(200);
    assert_eq!(answers.calibration_error(1), answers.calibration_error(1));
    assert_ne!(answers.calibration_error(1), answers.calibration_error(2));
}

#[test]
fn reference_quantile_is_exceeded_by_five_percent() {
    // One answer is wrong in 50 of the 1,000 draws of the first seed, and in 51 of those of the second.
    let quantile = |seed| of_equal_score(0.955, 0, 1).calibration_error(seed).unwrap().reference_quantile;
    assert!(near(quantile(6), 0.045) && near(quantile(5), 0.955));
}

#[test]
fn paired_errors_compare_models() {
    let pairs = [(true, false), (true, false), (false, true), (true, true), (false, false)];
    let counted = PairedErrors::count(pairs);
    assert_eq!(counted, PairedErrors { none: 1, first_only: 2, second_only: 1, both: 1 });
    assert!(near(counted.accuracy_difference().unwrap(), -0.2));
    assert!(near(counted.mcnemar_p_value(), 1.0));
    assert_eq!(PairedErrors::default().accuracy_difference(), None);
    assert!(near(PairedErrors::default().mcnemar_p_value(), 1.0));
}

/// One hundred scores: 0.505, 0.510, … 1.
fn spread() -> Vec<f64> {
    (1..=100).map(|index| 0.5 + f64::from(index) / 200.0).collect()
}

#[test]
fn threshold_is_the_last_that_passes() {
    // Right above 0.75, wrong below: 1,000 labels, ten a score.
    let answers = random(spread().into_iter().flat_map(|score| [answer(score, score <= 0.75); 10]));
    let found = find_threshold(&promise(0.1, 0.1), &candidates(&spread()), &answers);
    let ThresholdFinding::Tested(tested) = found else { panic!("{found:?}") };
    // Half is right. At 55 %, 50 of 550 are wrong, which is too many for a promise of 10 %.
    assert!(near(tested.point.threshold.get(), 0.755), "{tested:?}");
    assert_eq!((tested.point.coverage, tested.point.risk), (proportion(500, 1000), proportion(0, 500)));
    assert!(tested.p_value < 1e-20);
}

#[test]
fn sequence_begins_where_enough_labels_are_expected_and_ends_at_the_first_failure() {
    // The most confident 5 % are wrong.
    let is_wrong_at_the_top = |score: f64| answer(score, score > 0.975);
    let labels =
        |each: usize| random(spread().into_iter().flat_map(move |score| vec![is_wrong_at_the_top(score); each]));
    let find = |each| find_threshold(&promise(0.1, 0.1), &candidates(&spread()), &labels(each));
    // 1,600 labels: 5 % of them are 8 / alpha. The first test fails, and no later one is made.
    assert!(matches!(find(16), ThresholdFinding::NoThreshold { .. }), "{:?}", find(16));
    // 100 labels: the sequence begins at 80 %.
    let found = find(1);
    let ThresholdFinding::TooFewLabels(few) = found else { panic!("{found:?}") };
    assert_eq!(few.risk, proportion(5, 80));
}

#[test]
fn volunteered_labels_give_no_threshold() {
    let perfect =
        LabelledAnswers::new(LabelSelection::Volunteered, spread().into_iter().map(|score| answer(score, false)));
    let found = find_threshold(&promise(0.1, 0.1), &candidates(&spread()), &perfect);
    assert_eq!(found, ThresholdFinding::Volunteered);
}

#[test]
fn too_few_labels_names_the_missing_ones() {
    let find = |errors, total| {
        let found = find_threshold(&promise(0.05, 0.1), &candidates(&[0.9]), &of_equal_score(0.9, errors, total));
        let ThresholdFinding::TooFewLabels(few) = found else { panic!("{found:?}") };
        (few.minimum(), few.needed())
    };
    assert_eq!(find(0, 44), (45, Some(45)));
    assert_eq!(find(0, 0), (45, None));
    // Above the promise, and too few to say so.
    assert_eq!(find(4, 40), (45, None));
    // One of 50 wrong: the smallest total with ceil(n / 50) errors at most.
    assert_eq!(find(1, 50), (45, Some(132)));
    assert!(binomial_tail(132, probability(0.05), 3) <= 0.1 && binomial_tail(131, probability(0.05), 3) > 0.1);
    // 4.9 %: more than a million would be needed.
    assert_eq!(find(4_999, 100_000).1, None);
}

#[test]
fn no_threshold_is_said_only_if_the_labels_show_it() {
    let find = |answers: &LabelledAnswers| find_threshold(&promise(0.05, 0.1), &candidates(&spread()), answers);
    // 100 labels: only the candidate that accepts all is tested. One of the most confident twenty is wrong.
    let few = random(spread().into_iter().map(|score| answer(score, near(score, 0.95) || score <= 0.545)));
    let ThresholdFinding::TooFewLabels(found) = find(&few) else { panic!("{:?}", find(&few)) };
    assert_eq!(
        (found.risk, found.first_coverage, found.needed()),
        (proportion(1, 20), Some(proportion(100, 100)), None)
    );
    // 500 labels: the strictest permitted candidate accepts 35 %, and fails with 8 errors of 175.
    let scores = || (0..500).map(|item| 0.5 + f64::from(item % 100 + 1) / 200.0);
    let wrong = |number: usize, score: f64| score > 0.83 && number.is_multiple_of(20);
    let strict = random(scores().enumerate().map(|(number, score)| answer(score, wrong(number, score))));
    let ThresholdFinding::TooFewLabels(found) = find(&strict) else { panic!("{:?}", find(&strict)) };
    assert_eq!(found.first_coverage, Some(proportion(175, 500)));
    // 6 of 100 wrong: 2.2 to 12.6 %.
    let unsure = of_equal_score(0.9, 6, 100);
    let ThresholdFinding::TooFewLabels(found) = find_threshold(&promise(0.05, 0.1), &candidates(&[0.9]), &unsure)
    else {
        panic!("0.05 is within the interval")
    };
    assert_eq!(found.first_coverage, None, "there is no stricter candidate");
    // 12 of 100 wrong: 6.4 to 20.0 %.
    let shown = find_threshold(&promise(0.05, 0.1), &candidates(&[0.9]), &of_equal_score(0.9, 12, 100));
    assert_eq!(shown, ThresholdFinding::NoThreshold { most_confident_fifth: proportion(12, 100) });
    assert_eq!(promise(0.05, 0.1).labels_of_a_test(), 160);
}

#[test]
fn all_right_passes_and_all_wrong_has_no_threshold() {
    let find = |errors, total| {
        find_threshold(&promise(0.05, 0.1), &candidates(&[0.9, 0.9]), &of_equal_score(0.9, errors, total))
    };
    let found = find(0, 45);
    assert!(matches!(found, ThresholdFinding::Tested(tested) if tested.point.coverage == proportion(45, 45)));
    assert_eq!(find(100, 100), ThresholdFinding::NoThreshold { most_confident_fifth: proportion(100, 100) });
}

#[test]
fn candidates_skip_answers_without_score() {
    // Half has no score: no threshold accepts more than 50 %.
    let half = spread().into_iter().flat_map(|score| [Some(probability(score)), None]);
    let answers = random(spread().into_iter().chain(spread()).map(|score| answer(score, false)));
    let found = find_threshold(&promise(0.1, 0.1), &ThresholdCandidates::from_scores(half).unwrap(), &answers);
    assert!(matches!(found, ThresholdFinding::Tested(tested) if near(tested.point.threshold.get(), 0.505)));
    let without_scores = random(vec![LabelledAnswer { score: None, is_error: false }; 100]);
    let found = find_threshold(&promise(0.1, 0.1), &candidates(&spread()), &without_scores);
    assert!(matches!(found, ThresholdFinding::TooFewLabels(few) if few.needed().is_none()), "{found:?}");
    assert_eq!(ThresholdCandidates::from_scores([None, None]), None);
    assert_eq!(ThresholdCandidates::from_scores([]), None);
}

/// Returns requests with so many questions of 50 tokens over a state; four of five answers are accepted at 0.8.
fn requests(questions: u32, state_tokens: u64) -> Vec<CascadeRequest> {
    let question = |number: u32| CascadeQuestion {
        tokens: 50,
        tested: None,
        score: Some(probability(if number % 5 == 4 { 0.6 } else { 0.9 })),
        is_error_of_first: number % 10 == 9,
        is_error_of_last: false,
    };
    let request =
        |first: u32| CascadeRequest { state_tokens, questions: (first..first + questions).map(question).collect() };
    (0..100).map(|number| request(number * questions)).collect()
}

fn accepts(threshold: f64) -> impl Fn(&CascadeQuestion) -> bool {
    move |question| question.is_accepted_at(Some(probability(threshold)))
}

#[test]
fn cascade_of_one_question_costs_ratio_and_escalated_share() {
    let ratio = PriceRatio::new(0.1).unwrap();
    let predicted = predict_cascade(&requests(1, 500), ratio, EscalatedQuestions::Open, accepts(0.8));
    assert!(near(predicted.relative_cost.unwrap(), 0.3));
    assert_eq!((predicted.accepted, predicted.escalated), (proportion(80, 100), proportion(20, 100)));
    assert_eq!(predicted.risk, proportion(0, 100));
    let all = predict_cascade(&requests(1, 500), ratio, EscalatedQuestions::Open, accepts(0.0));
    assert!(near(all.relative_cost.unwrap(), 0.1) && all.risk == proportion(10, 100));
}

#[test]
fn cascade_that_escalates_each_request_costs_more_than_the_last_model() {
    // One of five questions is escalated in every request, and the state is sent again.
    let ratio = PriceRatio::new(0.42).unwrap();
    let predicted = predict_cascade(&requests(5, 500), ratio, EscalatedQuestions::Open, accepts(0.8));
    assert!(near(predicted.relative_cost.unwrap(), 0.42 + 550.0 / 750.0));
    assert_eq!(predict_cascade(&[], ratio, EscalatedQuestions::All, accepts(0.8)).relative_cost, None);
    assert_eq!([f64::NAN, f64::INFINITY, -0.1].map(PriceRatio::new), [None; 3]);
}

#[test]
fn last_model_that_receives_all_questions_costs_the_whole_request() {
    // Questions of other sizes than the open ones, and one request without an escalation.
    let mut asked = requests(5, 500);
    asked.truncate(4);
    for request in &mut asked {
        request.questions[0].tokens = 250;
    }
    asked[3].questions[4].score = Some(probability(1.0));
    let predict = |received| predict_cascade(&asked, PriceRatio::new(0.1).unwrap(), received, accepts(0.8));
    let (open, all) = (predict(EscalatedQuestions::Open), predict(EscalatedQuestions::All));
    assert_eq!((open.accepted, open.escalated, open.risk), (all.accepted, all.escalated, all.risk));
    assert!(near(open.relative_cost.unwrap(), 0.1 + 3.0 * 550.0 / (4.0 * 950.0)), "{open:?}");
    assert!(near(all.relative_cost.unwrap(), 0.1 + 0.75), "{all:?}");
}
