//! Reports of planted answers.

use std::num::NonZeroU32;

use super::*;
use crate::evidence::LabelSource;
use crate::json::Json;
use crate::money::Usd;
use crate::question::{AnswerValue, ChoiceOption, QuestionKind};
use crate::statistics::{
    Decision, Draws, EscalatedQuestions, LabelSelection, LabelledAnswers, PairedErrors, Probability, Promise,
    ThresholdFinding,
};

fn probability(number: f64) -> Probability {
    Probability::new(number).unwrap()
}

fn settings(alpha: f64) -> ReportSettings {
    ReportSettings {
        selection: LabelSelection::Random,
        decisive_version: None,
        alpha: probability(alpha),
        delta: probability(0.1),
        tolerance: 0,
        seed: 1,
    }
}

fn origin(model: &str) -> AnswerOrigin {
    AnswerOrigin {
        model: model.to_owned(),
        provider: "alpha".to_owned(),
        wire: "system-one".to_owned(),
        method: "native".to_owned(),
    }
}

/// Returns an answer to a question about an item, with the label that makes it right or wrong.
fn answer(model: &str, question: &str, item: usize, score: f64, is_error: bool) -> EvaluatedAnswer {
    EvaluatedAnswer {
        item: item.to_string(),
        group: Group { preset_version: 1, question: question.to_owned(), origin: origin(model) },
        decision: Ok(Decision::Noul(true)),
        score: Some(probability(score)),
        label: Some((Decision::Noul(!is_error), LabelSource::Reference)),
        is_for_candidates: item < 100,
        cost: Usd::from_pico(10),
        latency_ms: item as u64,
        escalated_questions: EscalatedQuestions::Open,
        size: Some(RequestSize { state: 400, question: 100 }),
    }
}

/// Returns answers of a model that is right with the probability of its score.
fn calibrated(model: &str, question: &str, items: usize) -> Vec<EvaluatedAnswer> {
    let mut draws = Draws::new(7);
    let mut item = |item| {
        let score = ((0.5 + 0.5 * draws.next_number().sqrt()) * 100.0).round() / 100.0;
        answer(model, question, item, score, draws.next_number() >= score)
    };
    (0..items).map(&mut item).collect()
}

#[test]
fn group_has_the_figures_of_its_answers() {
    let mut answers: Vec<EvaluatedAnswer> =
        (0..300).map(|item| answer("m", "refund", item, 0.9, item % 10 == 0)).collect();
    answers[299].label = None;
    answers[298].label = Some((Decision::Noul(true), LabelSource::Human));
    answers.extend((0..300).map(|item| answer("m", "queue", item, 0.6, true)));
    let report = Report::new(&answers, &settings(0.05));
    let [queue, refund] = &report.groups[..] else { panic!("{} groups", report.groups.len()) };
    assert_eq!((queue.group.question.as_str(), refund.group.question.as_str()), ("queue", "refund"));
    assert_eq!((refund.answers, refund.for_candidates, refund.labelled.count()), (300, 100, 199));
    assert_eq!(refund.sources, [(LabelSource::Human, 1), (LabelSource::Reference, 198)].into());
    let accuracy = refund.labelled.accuracy();
    assert_eq!((accuracy.count(), accuracy.total()), (179, 199));
    assert_eq!(queue.labelled.accuracy().count(), 0);
    assert_eq!(refund.cost_per_1000, Some(Usd::from_pico(10_000)));
    assert_eq!(refund.latency, Latency { median_ms: 149, p95_ms: 284 });
    // Two questions share delta.
    assert_eq!(report.promise, Promise::new(probability(0.05), probability(0.1), NonZeroU32::new(2).unwrap()));
    assert!(!refund.calibration.unwrap().is_distinguishable());
    assert!(queue.calibration.unwrap().is_distinguishable());
    assert_eq!((report.comparisons.len(), report.cascades.len()), (0, 0));
}

#[test]
fn labels_for_candidates_are_used_for_nothing() {
    let mut answers = calibrated("m", "refund", 1_100);
    let before = Report::new(&answers, &settings(0.1));
    assert!(
        matches!(before.groups[0].threshold, Some(ThresholdFinding::Tested(_))),
        "{:?}",
        before.groups[0].threshold
    );
    for answer in answers.iter_mut().filter(|answer| answer.is_for_candidates) {
        answer.label = Some((Decision::Noul(false), LabelSource::Human));
    }
    assert_eq!(Report::new(&answers, &settings(0.1)), before);
    answers.reverse();
    assert_eq!(Report::new(&answers, &settings(0.1)), before, "the order of the answers is irrelevant");
}

/// Collects answers as stored evidence, newest first.
fn live(answers: &[EvaluatedAnswer]) -> LiveAnswers {
    let mut found = LiveAnswers::default();
    for answer in answers.iter().rev() {
        found.add(answer.group.clone(), answer.tallied(0));
    }
    found
}

#[test]
fn live_answers_have_all_figures_but_no_threshold_of_volunteered_labels() {
    let mut answers: Vec<EvaluatedAnswer> =
        (0..1_200).map(|item| answer("m", "refund", item, 0.9, item % 10 == 0)).collect();
    for (number, answer) in answers.iter_mut().enumerate() {
        answer.label = answer.label.filter(|_| number % 3 == 0).map(|(label, _)| (label, LabelSource::Human));
        answer.is_for_candidates = false;
    }
    let volunteered = ReportSettings { selection: LabelSelection::Volunteered, ..settings(0.1) };
    let report = live(&answers).report(&volunteered);
    assert_eq!(report, Report::new(&answers, &volunteered));
    let group = &report.groups[0];
    assert_eq!((group.answers, group.labelled.count(), group.for_candidates), (1_200, 400, 0));
    assert_eq!(group.sources, [(LabelSource::Human, 400)].into());
    assert_eq!((group.threshold, report.has_too_few_labels()), (Some(ThresholdFinding::Volunteered), false));
    assert_eq!(group.latency, Latency { median_ms: 599, p95_ms: 1_139 });
    let none = LiveAnswers::default().report(&volunteered);
    assert!(none.groups.is_empty() && none.has_too_few_labels());
}

#[test]
fn first_500_live_answers_give_the_candidates_of_random_labels() {
    let mut answers = calibrated("m", "refund", 1_500);
    for (item, answer) in answers.iter_mut().enumerate() {
        answer.is_for_candidates = item < 500;
    }
    answers.extend(calibrated("other", "refund", 3));
    let report = live(&answers).report(&settings(0.1));
    let [many, few] = &report.groups[..] else { panic!("{} groups", report.groups.len()) };
    assert_eq!((many.for_candidates, many.labelled.count()), (500, 1_000));
    assert!(matches!(many.threshold, Some(ThresholdFinding::Tested(_))), "{:?}", many.threshold);
    assert_eq!(many.threshold, Report::new(&answers[..1_500], &settings(0.1)).groups[0].threshold);
    assert_eq!((few.for_candidates, few.labelled.count(), few.is_decisive), (3, 0, false));
    assert!(!report.has_too_few_labels(), "a small group does not decide");
}

#[test]
fn live_answer_without_a_record_has_no_cost() {
    let mut found = LiveAnswers::default();
    let group = answer("m", "refund", 0, 0.9, false).group;
    for (cost, latency_ms) in [(None, None), (Some(Usd::from_pico(3)), Some(8)), (None, None)] {
        found.add(group.clone(), TalliedAnswer { score: None, label: None, missing: None, cost, latency_ms });
    }
    let report = found.report(&settings(0.1));
    let group = &report.groups[0];
    assert_eq!((group.answers, group.cost_per_1000), (3, Some(Usd::from_pico(3_000))));
    assert_eq!((group.latency, group.threshold), (Latency { median_ms: 8, p95_ms: 8 }, None));
}

#[test]
fn groups_are_never_pooled() {
    let mut answers = calibrated("m", "refund", 400);
    for (number, answer) in answers.iter_mut().enumerate() {
        let group = &mut answer.group;
        match number % 5 {
            0 => {}
            1 => group.preset_version = 2,
            2 => group.origin.provider = "beta".to_owned(),
            3 => group.origin.wire = "gemini-decisions".to_owned(),
            _ => group.origin.method = "structured".to_owned(),
        }
    }
    let report = Report::new(&answers, &settings(0.05));
    assert_eq!(report.groups.iter().map(|group| group.answers).collect::<Vec<_>>(), [80; 5]);
    assert!(report.comparisons.is_empty() && report.has_too_few_labels());
}

#[test]
fn threshold_needs_random_labels_and_enough_of_them() {
    let many = calibrated("m", "refund", 1_100);
    let volunteered = ReportSettings { selection: LabelSelection::Volunteered, ..settings(0.1) };
    let report = Report::new(&many, &volunteered);
    assert_eq!(report.groups[0].threshold, Some(ThresholdFinding::Volunteered));
    assert!(!report.has_too_few_labels());
    let few = Report::new(&many[..140], &settings(0.1));
    assert!(few.has_too_few_labels(), "{:?}", few.groups[0].threshold);
    let none = Report::new(&many[..100], &settings(0.1));
    assert!(none.has_too_few_labels() && none.groups[0].labelled.count() == 0);
    assert!(Report::new(&[], &settings(0.1)).has_too_few_labels());
    let wrong: Vec<EvaluatedAnswer> = (0..900).map(|item| answer("m", "q", item, 0.9, item % 3 == 0)).collect();
    let report = Report::new(&wrong, &settings(0.1));
    assert!(matches!(report.groups[0].threshold, Some(ThresholdFinding::NoThreshold { .. })));
    let mut unscored = wrong;
    for answer in &mut unscored {
        answer.score = None;
    }
    let report = Report::new(&unscored, &settings(0.1));
    assert_eq!((report.groups[0].threshold, report.groups[0].calibration), (None, None));
    assert_eq!(report.groups[0].labelled.accuracy().total(), 800);
}

#[test]
fn answer_without_a_decision_is_an_error_that_no_threshold_accepts() {
    let mut answers: Vec<EvaluatedAnswer> = (0..600).map(|item| answer("m", "q", item, 0.97, false)).collect();
    for (item, answer) in answers.iter_mut().enumerate().filter(|(item, _)| item % 5 < 2) {
        let missing = if item % 5 == 0 { MissingDecision::Refusal } else { MissingDecision::Unanswered };
        (answer.decision, answer.score) = (Err(missing), None);
    }
    let report = Report::new(&answers, &settings(0.05));
    let group = &report.groups[0];
    assert_eq!((group.answers, group.refused, group.unanswered), (600, 120, 120));
    assert_eq!((group.labelled.accuracy().count(), group.labelled.accuracy().total()), (300, 500));
    let Some(ThresholdFinding::Tested(tested)) = group.threshold else { panic!("{:?}", group.threshold) };
    assert_eq!((tested.point.coverage.count(), tested.point.coverage.total()), (300, 500));
    assert_eq!(
        (decide(&AnswerValue::Refusal), decide(&AnswerValue::Box)),
        (Err(MissingDecision::Refusal), Err(MissingDecision::Unanswered))
    );
}

#[test]
fn questions_without_labels_share_no_promise_and_decide_no_exit_code() {
    let mut answers = calibrated("m", "refund", 1_100);
    let alone = Report::new(&answers, &settings(0.1));
    let unlabelled = |question: &str, score: Option<Probability>| {
        let mut unlabelled = calibrated("m", question, 1_100);
        for answer in &mut unlabelled {
            (answer.label, answer.score) = (None, score);
        }
        unlabelled
    };
    answers.extend(unlabelled("queue", Some(probability(0.9))));
    answers.extend(unlabelled("box", None));
    // A question with labels, and without a distribution, has no test.
    answers.extend(calibrated("m", "bare", 1_100).into_iter().map(|answer| EvaluatedAnswer { score: None, ..answer }));
    let report = Report::new(&answers, &settings(0.1));
    assert_eq!((report.groups.len(), report.promise), (4, alone.promise));
    assert!(!report.has_too_few_labels());
    for answer in &mut answers {
        answer.label = None;
    }
    assert!(Report::new(&answers, &settings(0.1)).has_too_few_labels(), "there are no labels at all");
}

#[test]
fn small_groups_and_older_versions_decide_no_exit_code() {
    let mut answers = calibrated("m", "refund", 1_100);
    let with = |item: usize, model: &str, version: u32| {
        let mut answer = answer(model, "refund", item, 0.9, true);
        answer.group.preset_version = version;
        answer
    };
    answers.extend((100..200).map(|item| with(item, "fallback", 1)));
    let required: Requirement = "refund.accuracy>=0.5".parse().unwrap();
    let report = Report::new(&answers, &settings(0.1));
    assert_eq!(report.groups.iter().map(|group| group.is_decisive).collect::<Vec<_>>(), [false, true]);
    assert!(!report.has_too_few_labels() && required.failures(&report).is_empty());
    // A tenth of the largest group is enough.
    answers.extend((200..210).map(|item| with(item, "fallback", 1)));
    let report = Report::new(&answers, &settings(0.1));
    assert!(report.groups.iter().all(|group| group.is_decisive));
    assert_eq!(required.failures(&report).len(), 1);
    // The newest version decides, however few answers it has.
    answers.extend((100..103).map(|item| with(item, "m", 2)));
    let report = Report::new(&answers, &settings(0.1));
    assert_eq!(report.groups.iter().map(|group| group.is_decisive).collect::<Vec<_>>(), [false, false, true]);
    assert!(report.has_too_few_labels());
    // After it was rolled back, the earlier one decides.
    let rolled_back = Report::new(&answers, &ReportSettings { decisive_version: Some(1), ..settings(0.1) });
    assert_eq!(rolled_back.groups.iter().map(|group| group.is_decisive).collect::<Vec<_>>(), [true, true, false]);
    let unused = Report::new(&answers, &ReportSettings { decisive_version: Some(3), ..settings(0.1) });
    assert!(unused.has_too_few_labels() && required.failures(&unused)[0].contains("the version that decides"));
    assert_eq!(
        required.failures(&report),
        ["refund.accuracy>=0.5: the lower limit of m by alpha (version 2) is 0.000"]
    );
}

#[test]
fn cascade_is_of_whole_requests_whatever_their_methods_are() {
    let mut answers = two_models(100);
    for answer in answers.iter_mut().filter(|answer| answer.group.question == "e") {
        answer.group.origin.method = "stated".to_owned();
    }
    let report = Report::new(&answers, &settings(0.05));
    let [cascade] = &report.cascades[..] else { panic!("{} cascades", report.cascades.len()) };
    assert_eq!((cascade.first.model.as_str(), cascade.last_alone.total()), ("small", 1000));
}

#[test]
fn cascade_is_predicted_at_the_tested_thresholds() {
    let mut answers = two_models(100);
    // The scores of one question are those of right answers: it has no tested threshold, and always goes on.
    for answer in answers.iter_mut().filter(|answer| answer.group.question == "e") {
        answer.score = Some(probability(0.9));
    }
    let scores_only = answers.clone().into_iter().map(|mut answer| {
        (answer.is_for_candidates, answer.item) = (true, format!("{}-", answer.item));
        answer
    });
    let scores_only: Vec<EvaluatedAnswer> = scores_only.collect();
    answers.extend(scores_only);
    let report = Report::new(&answers, &settings(0.05));
    let tested = |question: &str, model: &str| {
        let group = |group: &&GroupReport| {
            (group.group.question.as_str(), group.group.origin.model.as_str()) == (question, model)
        };
        matches!(report.groups.iter().find(group).unwrap().threshold, Some(ThresholdFinding::Tested(_)))
    };
    assert!(tested("a", "small") && !tested("e", "small"));
    let [cascade] = &report.cascades[..] else { panic!("{} cascades", report.cascades.len()) };
    let predicted = cascade.tested.unwrap();
    // 160 right answers to each of four questions.
    assert_eq!((predicted.accepted.count(), predicted.risk.count()), (640, 0));
    assert!(cascade.pays(&predicted) == (predicted.relative_cost.unwrap() < 1.0));
    // Cheaper, with more errors than the last model alone.
    let (_, widest) = cascade.predictions[0];
    assert!(widest.relative_cost.unwrap() < 1.0 && !cascade.pays(&widest));
}

#[test]
fn comparison_is_of_items_that_both_answered() {
    let first = (100..200).map(|item| answer("a", "q", item, 0.9, item < 120));
    let second = (150..250).map(|item| answer("b", "q", item, 0.9, item < 160));
    let answers: Vec<EvaluatedAnswer> = first.chain(second).collect();
    let report = Report::new(&answers, &settings(0.05));
    let [compared] = &report.comparisons[..] else { panic!("{} groups", report.groups.len()) };
    assert_eq!((compared.first.model.as_str(), compared.second.model.as_str()), ("a", "b"));
    assert_eq!(compared.errors, PairedErrors { none: 40, first_only: 0, second_only: 10, both: 0 });
}

/// Returns answers of two models to five questions: the last one is always right, the first where its score is high.
fn two_models(first_cost: i64) -> Vec<EvaluatedAnswer> {
    let questions = ["a", "b", "c", "d", "e"];
    let mut answers = Vec::new();
    for item in 100..300 {
        for (number, question) in questions.into_iter().enumerate() {
            let is_hard = (item + number) % 5 == 0;
            let first = answer("small", question, item, if is_hard { 0.6 } else { 0.97 }, is_hard);
            answers.push(EvaluatedAnswer { cost: Usd::from_pico(first_cost), ..first });
            let last = answer("large", question, item, 0.9, false);
            answers.push(EvaluatedAnswer { cost: Usd::from_pico(1000), ..last });
        }
    }
    answers
}

#[test]
fn cascade_is_from_the_cheaper_to_the_dearer_model() {
    let report = Report::new(&two_models(100), &settings(0.05));
    let [cascade] = &report.cascades[..] else { panic!("{} groups", report.groups.len()) };
    assert_eq!((cascade.first.model.as_str(), cascade.last.model.as_str()), ("small", "large"));
    assert_eq!((cascade.last_alone.count(), cascade.last_alone.total()), (0, 1000));
    // Each request has one question of five for the last model: 0.1 + (400 + 100) / 900.
    let (threshold, paying) = cascade.cheapest().unwrap();
    assert_eq!((threshold.get(), paying.accepted.count(), paying.escalated.count()), (0.65, 800, 200));
    assert!((paying.relative_cost.unwrap() - (0.1 + 500.0 / 900.0)).abs() < 1e-12);
    // At the lowest threshold the cascade is cheapest, and makes the errors of the first model.
    assert_eq!(cascade.predictions[0].1.risk.count(), 200);
    let dear = Report::new(&two_models(460), &settings(0.05));
    assert_eq!(dear.cascades[0].cheapest(), None);
    // A last model that receives all five questions is paid the whole request.
    let mut whole = two_models(100);
    for answer in whole.iter_mut().filter(|answer| answer.group.origin.model == "large") {
        answer.escalated_questions = EscalatedQuestions::All;
    }
    let whole = &Report::new(&whole, &settings(0.05)).cascades[0];
    assert_eq!((whole.escalated_questions, cascade.escalated_questions.as_str()), (EscalatedQuestions::All, "open"));
    assert_eq!(whole.cheapest(), None, "each request has an open question");
    let reversed = Report::new(&two_models(2000), &settings(0.05));
    assert_eq!(reversed.cascades[0].first.model, "large");
    let mut free = two_models(0);
    for answer in &mut free {
        answer.cost = Usd::ZERO;
    }
    let free = Report::new(&free, &settings(0.05));
    assert!(free.cascades[0].predictions.is_empty() && free.cascades[0].cheapest().is_none());
}

#[test]
fn cascade_leaves_out_requests_with_a_missing_label_or_size() {
    let mut answers = two_models(100);
    answers[0].label = None;
    answers[10].size = None;
    answers.remove(21);
    let report = Report::new(&answers, &settings(0.05));
    assert_eq!(report.cascades[0].last_alone.total(), 197 * 5);
}

#[test]
fn requirement_compares_the_lower_limit() {
    let answers: Vec<EvaluatedAnswer> = (100..200).map(|item| answer("m", "a.b", item, 0.9, item < 105)).collect();
    let report = Report::new(&answers, &settings(0.05));
    let failures = |text: &str| text.parse::<Requirement>().unwrap().failures(&report);
    // 95 of 100: 0.8872 to 0.9836.
    assert_eq!(failures("a.b.accuracy>=0.88"), Vec::<String>::new());
    assert_eq!(
        failures("a.b.accuracy >= 0.89"),
        ["a.b.accuracy>=0.89: the lower limit of m by alpha (version 1) is 0.887"]
    );
    assert_eq!(failures("c.accuracy>=0"), ["c.accuracy>=0: the question has no answers in the version that decides"]);
    for text in ["", "a.accuracy", "a.accuracy>=", "a.accuracy>=1.1", "a.accuracy>=NaN", ".accuracy>=0", "a.risk>=0"] {
        assert_eq!(text.parse::<Requirement>(), Err(InvalidRequirement), "{text}");
    }
}

#[test]
fn cost_is_rounded_up_and_stays_in_range() {
    let of_costs = |costs: &[i64]| {
        let of_cost = |(item, cost): (usize, &i64)| EvaluatedAnswer {
            cost: Usd::from_pico(*cost),
            ..answer("m", "q", item, 0.9, false)
        };
        let answers: Vec<EvaluatedAnswer> = costs.iter().enumerate().map(of_cost).collect();
        Report::new(&answers, &settings(0.05)).groups[0].cost_per_1000
    };
    assert_eq!(of_costs(&[1, 1, 0]), Some(Usd::from_pico(667)));
    assert_eq!(of_costs(&[i64::MAX]), None);
}

#[test]
fn label_is_read_by_the_kind_of_its_question() {
    let read = |kind: &QuestionKind, label: &str| Decision::from_label(kind, &Json::parse(label).unwrap());
    let noul = QuestionKind::Noul { when_true: None, when_false: None };
    assert_eq!((read(&noul, "true"), read(&noul, "false")), (Ok(Decision::Noul(true)), Ok(Decision::Noul(false))));
    let boolean = ChoiceOption { boolean: Some(true), ..ChoiceOption::new("true", None) };
    let choice = QuestionKind::Choice { options: vec![boolean, ChoiceOption::new("tr\u{fc}e", None)] };
    assert_eq!(read(&choice, r#""tr\u00fce""#), Ok(Decision::Choice(1)));
    assert_eq!(read(&choice, "true"), Ok(Decision::Choice(0)));
    let error = read(&choice, "\"false\"").unwrap_err().to_string();
    assert_eq!(error, "\"false\" is not a label of this question; valid: true, \"tr\u{fc}e\"");
    let score = QuestionKind::Score { levels: vec![Json::string("calm"), Json::string("furious")] };
    assert_eq!(read(&score, "1"), Ok(Decision::Score(1)));
    for label in ["2", "-1", "1.5", "null", "\"yes\"", "[]"] {
        assert!(read(&score, label).is_err(), "{label}");
        assert!(read(&noul, label).is_err(), "{label}");
        assert!(read(&QuestionKind::Box, label).is_err(), "{label}");
    }
    let many = QuestionKind::Choice { options: (0..25).map(|n| ChoiceOption::new(n.to_string(), None)).collect() };
    let error = read(&many, &format!("\"{}\"", "x".repeat(100))).unwrap_err().to_string();
    assert!(error.ends_with("\"19\" and 5 more") && error.chars().filter(|c| *c == 'x').count() == 63, "{error}");
    assert_eq!(LabelledAnswers::new(LabelSelection::Random, []).count(), 0);
}
