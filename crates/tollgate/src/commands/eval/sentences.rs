//! The figures of a report as text.

use domain::evaluation::{AnswerOrigin, Cascade, GroupReport, Report};
use domain::statistics::{CalibrationError, LabelSelection, Promise, Proportion, ThresholdFinding};

/// The assumption of a tested threshold.
pub const ASSUMPTION: &str = "A tested threshold assumes that the labels are a random sample of the traffic on which \
                              it will be used, and are used for one test.";

/// Returns a share in percent.
pub fn per_cent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Returns a proportion with its interval.
pub fn with_interval(proportion: Proportion) -> String {
    let interval = proportion.interval();
    match proportion.share() {
        Some(share) => format!("{} ({:.1} to {:.1})", per_cent(share), interval.lower * 100.0, interval.upper * 100.0),
        None => "-".to_owned(),
    }
}

/// Returns the origin of answers.
pub fn origin(origin: &AnswerOrigin) -> String {
    let AnswerOrigin { model, provider, wire, method } = origin;
    format!("{model} by {provider} ({wire}, {method})")
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
            let needed = few
                .needed()
                .zip(few.risk.share())
                .map(|(needed, rate)| format!("; at the present error rate {} about {needed} more", per_cent(rate)));
            format!(
                "too few labels: at least {minimum} accepted labels without an error are needed{}",
                needed.unwrap_or_default()
            )
        }
        ThresholdFinding::NoThreshold { most_confident_fifth } => format!(
            "no threshold reaches {alpha}: the most confident fifth is wrong in {}",
            with_interval(most_confident_fifth)
        ),
        ThresholdFinding::Volunteered => {
            "no threshold: people chose the labels, so the labels say nothing about the traffic".to_owned()
        }
    }
}

/// Returns the finding for a cascade.
pub fn cascade(cascade: &Cascade) -> String {
    let alone = with_interval(cascade.last_alone);
    match cascade.cheapest() {
        Some((threshold, paying)) => format!(
            "pays: at the threshold {} it costs {:.2} of the last model alone, with {} errors (the last model alone: \
             {alone})",
            threshold.get(),
            paying.relative_cost.unwrap_or_default(),
            with_interval(paying.risk),
        ),
        None => format!(
            "does not pay: no threshold costs less than the last model alone without more errors than its {alone}"
        ),
    }
}

/// Returns the sentence on the promise of all thresholds.
pub fn promise(report: &Report) -> Option<String> {
    let promise = report.promise.as_ref()?;
    let (alpha, delta) = (per_cent(promise.alpha().get()), promise.delta().get());
    Some(format!("Thresholds promise a risk of at most {alpha}, each except with probability {delta:.3}. {ASSUMPTION}"))
}
