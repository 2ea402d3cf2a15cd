//! The page and the sentences of planted reports.

use domain::evaluation::{AnswerOrigin, EvaluatedAnswer, Group, Report, ReportSettings, RequestSize};
use domain::evidence::LabelSource;
use domain::money::Usd;
use domain::statistics::{Decision, EscalatedQuestions, LabelSelection, Probability};

use super::{html, sentences, tables};

const HOSTILE: &str = "</title><script>alert(\"&'\")</script>\u{1b}[2J\u{202e}";

fn report_of(selection: LabelSelection, items: usize, is_error: impl Fn(usize) -> bool, score: f64) -> Report {
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
        decision: Decision::Noul(true),
        score: Some(Probability::new(score).unwrap()),
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
    let settings = ReportSettings { selection, alpha: share(0.05), delta: share(0.1), tolerance: 0, seed: 1 };
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
         45 more"
    );
    let none = sentence(&report_of(LabelSelection::Random, 1_100, |item| item % 4 == 0, 0.9));
    assert_eq!(none, "no threshold reaches 5.0 %: the most confident fifth is wrong in 25.0 % (22.3 to 27.8)");
    let volunteered = report_of(LabelSelection::Volunteered, 400, |_| false, 0.9);
    assert!(sentence(&volunteered).contains("people chose the labels"));
    assert_eq!(sentences::sources(&volunteered.groups[0]), "300 reference (volunteered)");
    let tested = sentence(&report_of(LabelSelection::Random, 400, |item| item % 40 == 0, 0.9));
    assert!(tested.starts_with("tested threshold 0.9: accepts 100.0 %"), "{tested}");
    assert!(sentences::promise(&volunteered).unwrap().contains("a random sample of the traffic"));
}

#[test]
fn row_has_a_cell_for_each_head() {
    let report = report_of(LabelSelection::Random, 200, |_| false, 1.0);
    let [question, _, labels, accuracy, brier, .., cost, median, p95] = tables::row(&report.groups[0]);
    assert_eq!((question.as_str(), labels.as_str()), (HOSTILE, "100 reference"));
    assert_eq!((accuracy.as_str(), brier.as_str()), ("100.0 % (96.4 to 100.0)", "0.000"));
    assert_eq!((cost.as_str(), median.as_str(), p95.as_str()), ("0.0000009", "1", "1"));
    // A thousand answers with one score are one point.
    assert_eq!(tables::curve(&report.groups[0]).len(), 1);
}
