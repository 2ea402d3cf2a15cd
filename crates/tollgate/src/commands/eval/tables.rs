//! The rows of a report's tables, and the points of its curves.

use domain::evaluation::{Cascade, CascadeModel, Comparison, GroupReport, Report};
use domain::statistics::{CascadePrediction, EscalatedQuestions, Proportion, RiskCoverage};

use super::sentences;

/// The most points of a curve.
const MAX_POINTS: usize = 200;

/// The heads of the table of groups.
pub const HEADS: [&str; 11] = [
    "QUESTION",
    "VERSION",
    "MODEL",
    "ANSWERS",
    "LABELS",
    "ACCURACY",
    "BRIER",
    "LOG LOSS",
    "USD/1,000",
    "MEDIAN MS",
    "P95 MS",
];

/// Returns the row of a group.
pub fn row(group: &GroupReport) -> [String; 11] {
    let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.3}"));
    [
        group.group.question.clone(),
        group.group.preset_version.to_string(),
        sentences::origin(&group.group.origin),
        sentences::answers(group),
        sentences::sources(group),
        sentences::with_interval(group.labelled.accuracy()),
        number(group.labelled.brier_score()),
        number(group.labelled.log_loss()),
        group.cost_per_1000.map_or_else(|| "-".to_owned(), |cost| cost.to_string()),
        group.latency.median_ms.to_string(),
        group.latency.p95_ms.to_string(),
    ]
}

/// Returns the findings for a group.
pub fn findings(group: &GroupReport, report: &Report) -> Vec<String> {
    let calibration = group.calibration.as_ref().map(sentences::calibration);
    let is_ignored = (!group.is_decisive).then(|| {
        "not decisive: exit codes and requirements ignore a group of another version, or with less than a tenth of the \
         answers of the largest one"
            .to_owned()
    });
    let threshold = sentences::threshold(group, report.promise.as_ref());
    calibration.into_iter().chain([threshold]).chain(is_ignored).collect()
}

/// The heads of the table of comparisons.
pub const COMPARISON_HEADS: [&str; 7] = ["QUESTION", "VERSION", "FIRST", "SECOND", "ITEMS", "DIFFERENCE", "MCNEMAR P"];

/// Returns the row of a comparison.
pub fn comparison_row(compared: &Comparison) -> [String; 7] {
    let difference = compared.errors.accuracy_difference().unwrap_or_default();
    [
        compared.question.clone(),
        compared.preset_version.to_string(),
        sentences::origin(&compared.first),
        sentences::origin(&compared.second),
        compared.errors.items().to_string(),
        format!("{:+.1} %", difference * 100.0),
        format!("{:.4}", compared.errors.mcnemar_p_value()),
    ]
}

/// The heads of the table of a cascade.
pub const CASCADE_HEADS: [&str; 6] = ["THRESHOLD", "ACCEPTED", "ESCALATED REQUESTS", "RELATIVE COST", "ERRORS", ""];

/// Returns the rows of a cascade: each threshold, then the tested ones together.
pub fn cascade_rows(cascade: &Cascade) -> Vec<[String; 6]> {
    let of_thresholds = cascade
        .predictions
        .iter()
        .map(|(threshold, predicted)| cascade_row(cascade, format!("{:.2}", threshold.get()), predicted));
    let tested = cascade.tested.iter().map(|predicted| cascade_row(cascade, "tested".to_owned(), predicted));
    of_thresholds.chain(tested).collect()
}

fn cascade_row(cascade: &Cascade, threshold: String, predicted: &CascadePrediction) -> [String; 6] {
    let share = |part: Proportion| part.share().map_or_else(|| "-".to_owned(), sentences::per_cent);
    [
        threshold,
        share(predicted.accepted),
        share(predicted.escalated),
        predicted.relative_cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.2}")),
        sentences::with_interval(predicted.risk),
        if cascade.pays(predicted) { "" } else { "does not pay" }.to_owned(),
    ]
}

/// Returns the title of a cascade.
pub fn cascade_title(cascade: &Cascade) -> String {
    let received = match cascade.escalated_questions {
        EscalatedQuestions::Open => "the questions that are not accepted",
        EscalatedQuestions::All => "all questions of a request with one that is not accepted",
    };
    let [first, last] =
        [&cascade.first, &cascade.last].map(|CascadeModel { model, provider }| format!("{model} by {provider}"));
    format!("version {}, {first}, then {last} with {received}", cascade.preset_version)
}

/// Returns the risk-coverage curve with at most 200 points, the last one included.
pub fn curve(group: &GroupReport) -> Vec<RiskCoverage> {
    let points = group.labelled.risk_coverage_curve();
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate().filter(|(number, _)| number % step == 0 || *number == last);
    kept.map(|(_, point)| point).collect()
}
