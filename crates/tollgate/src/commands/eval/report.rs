//! The report: on the terminal, as JSON, and as a page.

use std::fmt::Write as _;
use std::fs::File;

use domain::evaluation::{AnswerOrigin, Cascade, CascadeModel, GroupReport, Report, ReportSettings};
use domain::statistics::{
    CascadePrediction, LabelSelection, Probability, Proportion, ReliabilityBin, RiskCoverage, ThresholdFinding,
};
use serde_json::{Value, json};

use super::results::Results;
use super::tables::{
    CASCADE_HEADS, COMPARISON_HEADS, HEADS, cascade_rows, cascade_title, comparison_row, curve, findings, row,
};
use super::{html, sentences};
use crate::cli::ReportArgs;
use crate::commands::prelude::*;
use crate::commands::transfer::write_text;
use crate::output::UsdNumber;

/// The exit code of a report with too few labels.
const TOO_FEW_LABELS: u8 = 3;
/// The seed of the draws: a repeated report has the same figures.
const SEED: u64 = 1;

/// Prints the report of a result file, and writes it as a page.
///
/// # Errors
/// The result file is invalid, or the page cannot be written.
pub fn show_results(context: &Context, results: &Results, args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(&results.answers()?, &settings(args, LabelSelection::Random));
    report.failed_requests = results.failed_requests();
    let title = format!("{}, version {}", results.header.preset, results.header.version);
    show(context, &results.header.preset, &title, &report, args)
}

/// Returns the settings of a report.
pub fn settings(args: &ReportArgs, selection: LabelSelection) -> ReportSettings {
    let (alpha, delta, tolerance) = (args.alpha, args.delta, args.tolerance);
    ReportSettings { selection, decisive_version: None, alpha, delta, tolerance, seed: SEED }
}

/// Prints a report, and writes it as a page.
///
/// # Errors
/// The page cannot be written.
pub fn show(
    context: &Context,
    preset: &str,
    title: &str,
    report: &Report,
    args: &ReportArgs,
) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.html {
        let page = html::page(title, report).context("the charts cannot be drawn")?;
        let created = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
        write_text(created, file, &page)?;
    }
    let failures: Vec<String> = args.require.iter().flat_map(|required| required.failures(report)).collect();
    let document = json!({ "data": document(preset, report), "failed_requirements": failures });
    context.output.show(&document, || text(title, report))?;
    for failure in &failures {
        note(&format!("requirement failed: {failure}"));
    }
    Ok(match (failures.is_empty(), report.has_too_few_labels()) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(TOO_FEW_LABELS),
        (true, false) => ExitCode::SUCCESS,
    })
}

fn text(title: &str, report: &Report) -> String {
    let mut text = format!("{title}\n\n");
    // Writing to a string cannot fail.
    let rows: Vec<[String; 11]> = report.groups.iter().map(row).collect();
    let _ = writeln!(text, "{}", table(HEADS, &rows));
    if let Some(uncounted) = sentences::uncounted(report) {
        let _ = writeln!(text, "{uncounted}\n");
    }
    for group in &report.groups {
        let _ = writeln!(text, "{}:", sentences::heading(&group.group));
        for finding in findings(group, report) {
            let _ = writeln!(text, "  {finding}");
        }
    }
    if !report.comparisons.is_empty() {
        let rows: Vec<[String; 7]> = report.comparisons.iter().map(comparison_row).collect();
        let _ = writeln!(text, "\n{}", table(COMPARISON_HEADS, &rows));
    }
    for cascade in &report.cascades {
        let table = table(CASCADE_HEADS, &cascade_rows(cascade));
        let _ = writeln!(text, "\nCascade: {}\n{table}  {}", cascade_title(cascade), sentences::cascade(cascade));
    }
    if let Some(promise) = sentences::promise(report) {
        let _ = writeln!(text, "\n{promise}");
    }
    text
}

fn document(preset: &str, report: &Report) -> Value {
    let promise = report.promise.as_ref();
    json!({
        "preset": preset,
        "alpha": promise.map(|promise| promise.alpha().get()),
        "delta": promise.map(|promise| promise.delta().get()),
        "assumption": sentences::ASSUMPTION,
        "failed_requests": report.failed_requests,
        "groups": report.groups.iter().map(|group| group_value(group, report)).collect::<Vec<_>>(),
        "comparisons": report.comparisons.iter().map(|compared| json!({
            "preset_version": compared.preset_version,
            "question": compared.question,
            "first": origin_value(&compared.first),
            "second": origin_value(&compared.second),
            "items": compared.errors.items(),
            "accuracy_difference": compared.errors.accuracy_difference(),
            "mcnemar_p_value": compared.errors.mcnemar_p_value(),
        })).collect::<Vec<_>>(),
        "cascades": report.cascades.iter().map(cascade_value).collect::<Vec<_>>(),
    })
}

fn group_value(group: &GroupReport, report: &Report) -> Value {
    let labelled = &group.labelled;
    let sources = group.sources.iter().map(|(source, count)| (source.as_str().to_owned(), json!(count)));
    json!({
        "question": group.group.question,
        "preset_version": group.group.preset_version,
        "origin": origin_value(&group.group.origin),
        "is_decisive": group.is_decisive,
        "answers": group.answers,
        "refused": group.refused,
        "unanswered": group.unanswered,
        "answers_for_candidates": group.for_candidates,
        "labels": sources.collect::<serde_json::Map<_, _>>(),
        "volunteered": labelled.selection() == LabelSelection::Volunteered,
        "accuracy": proportion_value(labelled.accuracy()),
        "brier_score": labelled.brier_score(),
        "log_loss": labelled.log_loss(),
        "calibration_error": group.calibration.map(|error| json!({
            "observed": error.observed,
            "reference_mean": error.reference_mean,
            "reference_quantile": error.reference_quantile,
            "is_distinguishable": error.is_distinguishable(),
        })),
        "reliability": labelled.reliability_diagram().iter().map(|bin: &ReliabilityBin| json!({
            "mean_score": bin.mean_score,
            "accuracy": proportion_value(bin.accuracy),
        })).collect::<Vec<_>>(),
        "risk_coverage": curve(group).iter().map(point_value).collect::<Vec<_>>(),
        "usd_per_1000": group.cost_per_1000.map(UsdNumber),
        "latency_median_ms": group.latency.median_ms,
        "latency_p95_ms": group.latency.p95_ms,
        "threshold": match group.threshold {
            Some(ThresholdFinding::Tested(tested)) => point_value(&tested.point),
            _ => Value::Null,
        },
        "finding": sentences::threshold(group, report.promise.as_ref()),
    })
}

fn origin_value(origin: &AnswerOrigin) -> Value {
    let AnswerOrigin { model, provider, wire, method } = origin;
    json!({ "model": model, "provider": provider, "wire": wire, "method": method })
}

fn proportion_value(proportion: Proportion) -> Value {
    let interval = proportion.interval();
    json!({
        "count": proportion.count(),
        "total": proportion.total(),
        "share": proportion.share(),
        "lower": interval.lower,
        "upper": interval.upper,
    })
}

fn point_value(point: &RiskCoverage) -> Value {
    json!({
        "threshold": point.threshold.get(),
        "coverage": proportion_value(point.coverage),
        "risk": proportion_value(point.risk),
    })
}

fn cascade_value(cascade: &Cascade) -> Value {
    let prediction = |threshold: Option<Probability>, predicted: &CascadePrediction| {
        json!({
            "threshold": threshold.map(Probability::get),
            "accepted": proportion_value(predicted.accepted),
            "escalated": proportion_value(predicted.escalated),
            "risk": proportion_value(predicted.risk),
            "relative_cost": predicted.relative_cost,
            "pays": cascade.pays(predicted),
        })
    };
    let of_thresholds =
        cascade.predictions.iter().map(|(threshold, predicted)| prediction(Some(*threshold), predicted));
    let model = |CascadeModel { model, provider }: &CascadeModel| json!({ "model": model, "provider": provider });
    json!({
        "preset_version": cascade.preset_version,
        "first": model(&cascade.first),
        "last": model(&cascade.last),
        "escalated_questions": cascade.escalated_questions.as_str(),
        "last_alone": proportion_value(cascade.last_alone),
        "predictions": of_thresholds.collect::<Vec<_>>(),
        "at_tested_thresholds": cascade.tested.as_ref().map(|tested| prediction(None, tested)),
        "pays": cascade.cheapest().is_some(),
        "finding": sentences::cascade(cascade),
    })
}
