//! Finds thresholds on drawn labels of models whose accuracy is known, and counts broken promises. Fails if a tested
//! threshold breaks its promise too often, or another method keeps it. `cargo xtask simulate` runs it.
#![expect(clippy::cast_precision_loss, reason = "figures are printed with a few digits")]

mod cascade;
mod scenario;
mod thresholds;

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;

use domain::statistics::{Draws, Probability, Proportion};

use cascade::CASCADES;
use scenario::{CALIBRATED, CONSTANT, LEANING, UNDERCONFIDENT};
use thresholds::{DELTA, Method, Setting};

/// The least mean coverage of the calibrated scenario with alpha 0.1 and 1,000 labels.
const LEAST_COVERAGE: f64 = 0.5;

/// The highest relative difference of predicted and measured cost.
const COST_TOLERANCE: f64 = 0.01;

fn main() -> Result<(), Box<dyn Error>> {
    let seeds = std::env::args().nth(1).map_or(Ok(200), |seeds| seeds.parse())?;
    let settings = thresholds::simulate(seeds)?;
    let mut text = String::new();
    let mut violations = Vec::new();
    write_settings(&settings, &mut text)?;
    for setting in &settings {
        violations.extend(violated_bounds(setting)?);
    }
    write_cascades(&mut text, &mut violations)?;
    std::io::stdout().write_all(text.as_bytes())?;
    if violations.is_empty() { Ok(()) } else { Err(violations.join("; ").into()) }
}

/// Returns the bounds that a setting violates. The lower 99 % limit of the share of broken promises decides.
fn violated_bounds(setting: &Setting) -> Result<Vec<String>, Box<dyn Error>> {
    let Setting { scenario, alpha, labels, .. } = setting;
    let name = format!("{}, alpha {alpha}, {labels} labels", scenario.name);
    let mut found = Vec::new();
    let one_percent = Probability::new(0.01)?;
    let breaks = |method| setting.broken(method).is_some_and(|share| share.lower_limit(one_percent) > DELTA);
    if breaks(Method::Tested) {
        found.push(format!("{name}: tested thresholds break their promise"));
    }
    let (is_calibrated, is_ten_percent) = (*scenario == CALIBRATED, *alpha > 0.09);
    // Many labels show without a test that no threshold reaches alpha.
    let is_shown_by_labels = scenario.oracle_coverage(0.1) == 0.0 && (!is_ten_percent || *labels > 1000);
    let breaking = [
        (Method::Naive, *scenario != UNDERCONFIDENT && !is_shown_by_labels),
        (Method::Volunteered, is_ten_percent && [CALIBRATED, LEANING, CONSTANT].contains(scenario)),
        (Method::Untested, ![CALIBRATED, UNDERCONFIDENT].contains(scenario)),
    ];
    for (method, must_break) in breaking {
        if must_break && !breaks(method) {
            found.push(format!("{name}: {method:?} thresholds keep their promise, so the simulation shows nothing"));
        }
    }
    if is_calibrated && is_ten_percent && *labels == 1000 && setting.coverage() < LEAST_COVERAGE {
        found.push(format!("{name}: mean coverage {:.3} is below {LEAST_COVERAGE}", setting.coverage()));
    }
    Ok(found)
}

fn write_settings(settings: &[Setting], text: &mut String) -> Result<(), Box<dyn Error>> {
    writeln!(
        text,
        "| scenario | alpha | labels | oracle coverage | coverage | tested | naive | volunteered | untested |"
    )?;
    writeln!(text, "|---|---:|---:|---:|---:|---:|---:|---:|---:|")?;
    for setting in settings {
        let Setting { scenario, alpha, labels, .. } = setting;
        write!(text, "| {} | {alpha:.2} | {labels} ", scenario.name)?;
        write!(text, "| {:.2} | {:.2} ", scenario.oracle_coverage(*alpha), setting.coverage())?;
        for method in Method::ALL {
            write!(text, "| {:.1} % ", 100.0 * setting.broken(method).and_then(Proportion::share).unwrap_or_default())?;
        }
        writeln!(text, "|")?;
    }
    Ok(writeln!(text)?)
}

fn write_cascades(text: &mut String, violations: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    writeln!(text, "| questions | price ratio | accepted | predicted cost | measured cost |")?;
    writeln!(text, "|---:|---:|---:|---:|---:|")?;
    for (cascade, seed) in CASCADES.iter().zip(1..) {
        let costs = cascade.simulate(&mut Draws::new(seed))?;
        let (questions, ratio) = (cascade.questions, cascade.price_ratio());
        write!(text, "| {questions} | {ratio:.2} | {:.1} % ", 100.0 * costs.accepted)?;
        writeln!(text, "| {:.3} | {:.3} |", costs.predicted, costs.measured)?;
        if (costs.predicted / costs.measured - 1.0).abs() > COST_TOLERANCE {
            violations.push(format!("{questions} questions, price ratio {ratio}: the predicted cost is wrong"));
        }
    }
    Ok(())
}
