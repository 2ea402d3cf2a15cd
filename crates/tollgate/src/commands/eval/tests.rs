//! The page and the sentences of planted reports.

use domain::evaluation::{AnswerOrigin, EvaluatedAnswer, Group, Report, ReportSettings, RequestSize};
use domain::evidence::LabelSource;
use domain::money::Usd;
use domain::statistics::{Decision, EscalatedQuestions, LabelSelection, Probability};

use super::{html, sentences, tables};

const HOSTILE: &str = "</title><script>alert(\"&'\")</script>\u{1b}[2J\u{202e}";

fn report_of(selection: LabelSelection, items: usize, is_error: impl Fn(usize) -> bool, score: f64) -> Report {
    report_with(selection, items, is_error, |_| score)
}

fn report_with(
    selection: LabelSelection,
    items: usize,
    is_error: impl Fn(usize) -> bool,
    score: impl Fn(usize) -> f64,
) -> Report {
    let answer = |item: usize, model: &str, cost: i64| EvaluatedAnswer {
        item: item.to_string(),
        group: Group {
            preset_version: 1,
            question: HOSTILE.to_owned(),
            origin: AnswerOrigin {
                model: format!("{model}{HOSTILE}"),
                provider: HOSTILE.to_owned(),
                wire: "system-one".to_owned(),
                method: HOSTILE.to_owned(),
            },
        },
        decision: Ok(Decision::Noul(true)),
        score: Some(Probability::new(score(item)).unwrap()),
        label: Some((Decision::Noul(!is_error(item)), LabelSource::Reference)),
        is_for_candidates: item < 100,
        cost: Usd::from_pico(cost),
        latency_ms: 1,
        escalated_questions: EscalatedQuestions::All,
        size: Some(RequestSize { state: 10, question: 5 }),
    };
    let answers: Vec<EvaluatedAnswer> =
        (0..items).flat_map(|item| [answer(item, "a", 900), answer(item, "b", 1000)]).collect();
    let share = |number: f64| Probability::new(number).unwrap();
    let (alpha, delta) = (share(0.05), share(0.1));
    let settings = ReportSettings { selection, decisive_version: None, alpha, delta, tolerance: 0, seed: 1 };
    Report::new(&answers, &settings)
}

#[test]
fn page_escapes_names_and_loads_nothing() {
    let report = report_of(LabelSelection::Random, 400, |item| item % 30 == 0, 0.97);
    let page = html::page(HOSTILE, &report).unwrap();
    assert!(page.contains("&lt;/title&gt;&lt;script&gt;alert(&quot;&amp;&#39;&quot;)&lt;/script&gt;\\u001b[2J\\u202e"));
    for forbidden in ["<script", "\u{1b}", "\u{202e}", "src=", "href=", "url("] {
        assert!(!page.contains(forbidden), "{forbidden:?}");
    }
    assert_eq!(page.matches("</title>").count(), 1);
    assert_eq!((page.matches("<svg").count(), page.matches("</svg>").count()), (4, 4));
    for word in ["risk", "coverage", "score", "accuracy", "not distinguishable from calibrated", "does not pay"] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn sentences_say_why_there_is_no_threshold() {
    let sentence = |report: &Report| sentences::threshold(&report.groups[0], report.promise.as_ref());
    let few = sentence(&report_of(LabelSelection::Random, 130, |_| false, 0.9));
    assert_eq!(
        few,
        "too few labels: at least 45 accepted labels without an error are needed; at the present error rate 0.0 % about \
         45 more accepted labels"
    );
    // 100 labels: a candidate that accepts fewer than all is expected to accept fewer than 8 / alpha.
    let spread = |item: usize| 0.5 + f64::from(u8::try_from(item % 50).unwrap()) / 100.0;
    let skipped = sentence(&report_with(LabelSelection::Random, 200, |item| (150..154).contains(&item), spread));
    assert!(skipped.starts_with("too few labels: at least 45 accepted labels"), "{skipped}");
    let end = "; the test ended with its first threshold, which accepts 100.0 %; stricter ones are expected to accept fewer \
               than 160 labels";
    assert!(skipped.ends_with(end), "{skipped}");
    let unsure = sentence(&report_of(LabelSelection::Random, 200, |item| item % 12 == 0, 0.9));
    assert!(unsure.starts_with("too few labels") && unsure.ends_with("% no number is enough"), "{unsure}");
    let none = sentence(&report_of(LabelSelection::Random, 1_100, |item| item % 4 == 0, 0.9));
    assert_eq!(none, "no threshold reaches 5.0 %: the most confident fifth is wrong in 25.0 % (22.3 to 27.8)");
    let volunteered = report_of(LabelSelection::Volunteered, 400, |_| false, 0.9);
    assert!(sentence(&volunteered).contains("people chose the labels"));
    let unlabelled = report_of(LabelSelection::Volunteered, 100, |_| false, 0.9);
    assert_eq!(sentence(&unlabelled), "no threshold: there are no labels");
    assert_eq!(sentences::promise(&unlabelled), None);
    assert_eq!(sentences::sources(&volunteered.groups[0]), "300 reference (volunteered)");
    let tested = sentence(&report_of(LabelSelection::Random, 400, |item| item % 40 == 0, 0.9));
    assert!(tested.starts_with("tested threshold 0.9: accepts 100.0 %"), "{tested}");
    assert!(sentences::promise(&volunteered).unwrap().contains("a random sample of the traffic"));
}

#[test]
fn share_below_one_per_cent_keeps_a_digit() {
    for (share, expected) in
        [(0.0, "0.0 %"), (0.5, "50.0 %"), (0.004, "0.4 %"), (0.0004, "0.04 %"), (0.000_05, "0.005 %")]
    {
        assert_eq!(sentences::per_cent(share), expected);
    }
}

#[test]
fn uncounted_answers_and_versions_are_named() {
    let mut report = report_of(LabelSelection::Random, 200, |_| false, 0.9);
    assert_eq!(sentences::uncounted(&report), None);
    report.failed_requests = [("a/b".to_owned(), 3)].into();
    (report.groups[0].refused, report.groups[0].unanswered) = (5, 2);
    assert_eq!(sentences::answers(&report.groups[0]), "200, 5 refused, 2 unanswered");
    assert!(sentences::heading(&report.groups[0].group).contains(", version 1, "));
    let page = html::page("report", &report).unwrap();
    for part in ["200, 5 refused, 2 unanswered", "Failed requests, which no figure counts: 3 of a/b.", ", version 1, "]
    {
        assert!(page.contains(part), "{part}");
    }
    let live = report_of(LabelSelection::Volunteered, 200, |_| false, 0.9);
    assert!(sentences::uncounted(&live).unwrap().contains("add no evidence"));
}

#[test]
fn paying_threshold_is_said_to_be_untested() {
    let report = report_of(LabelSelection::Random, 400, |_| false, 0.97);
    let mut cascade = report.cascades[0].clone();
    for (_, predicted) in &mut cascade.predictions {
        predicted.relative_cost = Some(0.4);
    }
    let finding = sentences::cascade(&cascade);
    assert!(finding.starts_with("pays: at the threshold"), "{finding}");
    assert!(
        finding.contains("chosen on these labels, and not tested") && finding.contains("tested thresholds"),
        "{finding}"
    );
    assert!(tables::cascade_rows(&cascade)[0][5].is_empty());
    assert_eq!(tables::cascade_rows(&cascade).last().unwrap()[0], "tested");
}

#[test]
fn row_has_a_cell_for_each_head() {
    let report = report_of(LabelSelection::Random, 200, |_| false, 1.0);
    let [question, version, _, answers, labels, accuracy, brier, .., cost, median, p95] =
        tables::row(&report.groups[0]);
    assert_eq!((question.as_str(), version.as_str()), (HOSTILE, "1"));
    assert_eq!((answers.as_str(), labels.as_str()), ("200", "100 reference"));
    assert_eq!((accuracy.as_str(), brier.as_str()), ("100.0 % (96.4 to 100.0)", "0.000"));
    assert_eq!((cost.as_str(), median.as_str(), p95.as_str()), ("0.0000009", "1", "1"));
    // A thousand answers with one score are one point.
    assert_eq!(tables::curve(&report.groups[0]).len(), 1);
}
