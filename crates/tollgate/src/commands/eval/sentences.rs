//! The figures of a report as text.

use domain::evaluation::{AnswerOrigin, Cascade, Group, GroupReport, Report};
use domain::statistics::{CalibrationError, CascadePrediction, LabelSelection, Promise, Proportion, ThresholdFinding};

/// The assumption of a tested threshold.
pub const ASSUMPTION: &str = "A tested threshold assumes that the labels are a random sample of the traffic on which \
                              it will be used, and are used for one test.";

/// The most digits of a share in percent.
const MAX_DIGITS: usize = 9;

/// Returns a share in percent.
pub fn per_cent(share: f64) -> String {
    format!("{} %", hundredths(share))
}

/// Returns a share in hundredths: with one digit, or as many as show that it is not zero.
fn hundredths(share: f64) -> String {
    let share = share * 100.0;
    let (mut digits, mut scaled) = (1, share * 10.0);
    while scaled > 0.0 && scaled < 1.0 && digits < MAX_DIGITS {
        (digits, scaled) = (digits + 1, scaled * 10.0);
    }
    format!("{share:.digits$}")
}

/// Returns a proportion with its interval.
pub fn with_interval(proportion: Proportion) -> String {
    let interval = proportion.interval();
    match proportion.share() {
        Some(share) => {
            format!("{} ({} to {})", per_cent(share), hundredths(interval.lower), hundredths(interval.upper))
        }
        None => "-".to_owned(),
    }
}

/// Returns the origin of answers.
pub fn origin(origin: &AnswerOrigin) -> String {
    let AnswerOrigin { model, provider, wire, method } = origin;
    format!("{model} by {provider} ({wire}, {method})")
}

/// Returns the heading of a group.
pub fn heading(group: &Group) -> String {
    format!("{}, version {}, {}", group.question, group.preset_version, origin(&group.origin))
}

/// Returns the number of answers, and of those without a decision.
pub fn answers(group: &GroupReport) -> String {
    let parts = [(group.refused, "refused"), (group.unanswered, "unanswered")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!(", {count} {name}"));
    parts.fold(group.answers.to_string(), |text, part| text + &part)
}

/// Returns the sentence on requests that no figure counts.
pub fn uncounted(report: &Report) -> Option<String> {
    if report.selection == LabelSelection::Volunteered {
        return Some(
            "Refusals, unanswered questions and failed requests add no evidence: no figure counts them.".to_owned(),
        );
    }
    let failed = report.failed_requests.iter().map(|(model, count)| format!("{count} of {model}"));
    let failed = failed.collect::<Vec<_>>().join(", ");
    (!failed.is_empty()).then(|| format!("Failed requests, which no figure counts: {failed}."))
}

/// Returns the number of labels by their source.
pub fn sources(group: &GroupReport) -> String {
    let sources = group.sources.iter().map(|(source, count)| format!("{count} {}", source.as_str()));
    let sources = sources.collect::<Vec<_>>().join(", ");
    match group.labelled.selection() {
        _ if sources.is_empty() => "none".to_owned(),
        LabelSelection::Volunteered => format!("{sources} (volunteered)"),
        LabelSelection::Random => sources,
    }
}

/// Returns the calibration error, never without its reference.
pub fn calibration(error: &CalibrationError) -> String {
    let CalibrationError { observed, reference_mean, reference_quantile } = error;
    let finding = if error.is_distinguishable() { "not calibrated" } else { "not distinguishable from calibrated" };
    format!(
        "ECE {observed:.3}; calibrated scores of this size would show {reference_mean:.3}, in 95 % of cases at most \
         {reference_quantile:.3}: {finding}"
    )
}

/// Returns the finding for a threshold.
pub fn threshold(group: &GroupReport, promise: Option<&Promise>) -> String {
    let Some((finding, promise)) = group.threshold.zip(promise) else {
        return "no threshold: the answers have no distribution".to_owned();
    };
    let alpha = per_cent(promise.alpha().get());
    match finding {
        ThresholdFinding::Tested(tested) => format!(
            "tested threshold {}: accepts {}, of which {} are wrong; at most {alpha} except with probability {:.3}",
            tested.point.threshold.get(),
            with_interval(tested.point.coverage),
            with_interval(tested.point.risk),
            promise.delta().get(),
        ),
        ThresholdFinding::TooFewLabels(few) => {
            let minimum = few.minimum();
            let at_rate = few.risk.share().map(|rate| match few.needed() {
                Some(needed) => {
                    format!("; at the present error rate {} about {needed} more accepted labels", per_cent(rate))
                }
                None => format!("; at the present error rate {} no number is enough", per_cent(rate)),
            });
            let skipped = few.first_coverage.and_then(Proportion::share).map(|share| {
                let least = promise.labels_of_a_test();
                format!(
                    "; the test ended with its first threshold, which accepts {}; stricter ones are expected to accept \
                     fewer than {least} labels",
                    per_cent(share)
                )
            });
            format!(
                "too few labels: at least {minimum} accepted labels without an error are needed{}{}",
                at_rate.unwrap_or_default(),
                skipped.unwrap_or_default(),
            )
        }
        ThresholdFinding::NoThreshold { most_confident_fifth } => format!(
            "no threshold reaches {alpha}: the most confident fifth is wrong in {}",
            with_interval(most_confident_fifth)
        ),
        ThresholdFinding::Volunteered if group.labelled.count() == 0 => "no threshold: there are no labels".to_owned(),
        ThresholdFinding::Volunteered => {
            "no threshold: people chose the labels, so the labels say nothing about the traffic".to_owned()
        }
    }
}

/// Returns the finding for a cascade.
pub fn cascade(cascade: &Cascade) -> String {
    let alone = with_interval(cascade.last_alone);
    let figures = |predicted: &CascadePrediction| {
        let cost = predicted.relative_cost.unwrap_or_default();
        format!("it costs {cost:.2} of the last model alone, with {} errors", with_interval(predicted.risk))
    };
    let finding = match cascade.cheapest() {
        Some((threshold, paying)) => format!(
            "pays: at the threshold {} {} (the last model alone: {alone}). This threshold was chosen on these labels, and \
             not tested.",
            threshold.get(),
            figures(paying),
        ),
        None => format!(
            "does not pay: no threshold costs less than the last model alone without more errors than its {alone}."
        ),
    };
    let tested = cascade.tested.as_ref().map(|tested| {
        let pays = if cascade.pays(tested) { "pays" } else { "does not pay" };
        format!(" With the tested thresholds of the first model {}: {pays}.", figures(tested))
    });
    finding + &tested.unwrap_or_default()
}

/// Returns the sentence on the promise of all thresholds; `None` without labels.
pub fn promise(report: &Report) -> Option<String> {
    let has_labels = report.groups.iter().any(|group| group.labelled.count() > 0);
    let promise = report.promise.as_ref().filter(|_| has_labels)?;
    let (alpha, delta) = (per_cent(promise.alpha().get()), promise.delta().get());
    Some(format!(
        "Thresholds promise a risk of at most {alpha}, each except with probability {delta:.3}, for a model that was chosen \
         before: the better one of several breaks its promise more often. {ASSUMPTION}"
    ))
}
