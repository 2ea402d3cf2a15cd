//! The charts of a group as SVG. They have no text of others: names are in the page around them.

use anyhow::anyhow;
use domain::evaluation::GroupReport;
use plotters::prelude::*;

use super::tables::curve;

const SIZE: (u32, u32) = (440, 320);
/// The line of the figures.
const LINE: RGBColor = RGBColor(31, 119, 180);
/// The line of perfect figures.
const DIAGONAL: RGBColor = RGBColor(150, 150, 150);

/// Draws the risk by coverage.
///
/// # Errors
/// The chart cannot be drawn.
pub fn risk_coverage(group: &GroupReport) -> anyhow::Result<String> {
    let points = curve(group).into_iter().filter_map(|point| Some((point.coverage.share()?, point.risk.share()?)));
    let points: Vec<(f64, f64)> = points.collect();
    let highest = points.iter().map(|(_, risk)| *risk).fold(0.05, f64::max);
    draw(("coverage", 0.0, 1.0), ("risk", 0.0, highest), &[(points, LINE)], &[])
}

/// Draws the accuracy by score, with the interval of each bin.
///
/// # Errors
/// The chart cannot be drawn.
pub fn reliability(group: &GroupReport) -> anyhow::Result<String> {
    let bins = group.labelled.reliability_diagram();
    let lowest = bins.iter().map(|bin| bin.mean_score).fold(0.5, f64::min);
    let point = |bin: &domain::statistics::ReliabilityBin| Some((bin.mean_score, bin.accuracy.share()?));
    let points: Vec<(f64, f64)> = bins.iter().filter_map(point).collect();
    let intervals = bins.iter().map(|bin| {
        let interval = bin.accuracy.interval();
        (bin.mean_score, interval.lower, interval.upper)
    });
    let diagonal = vec![(lowest, lowest), (1.0, 1.0)];
    let lines = [(diagonal, DIAGONAL), (points, LINE)];
    draw(("score", lowest, 1.0), ("accuracy", 0.0, 1.0), &lines, &intervals.collect::<Vec<_>>())
}

/// An axis: its name and its limits.
type Axis = (&'static str, f64, f64);

/// Draws lines, and vertical intervals with the value of their axis.
fn draw(
    across: Axis,
    up: Axis,
    lines: &[(Vec<(f64, f64)>, RGBColor)],
    intervals: &[(f64, f64, f64)],
) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
        area.fill(&WHITE).map_err(|error| failed(&error))?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(48)
            .build_cartesian_2d(across.1..across.2, up.1..up.2)
            .map_err(|error| failed(&error))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(across.0).y_desc(up.0).light_line_style(TRANSPARENT).draw().map_err(|error| failed(&error))?;
        for (points, colour) in lines {
            chart.draw_series(LineSeries::new(points.clone(), colour)).map_err(|error| failed(&error))?;
        }
        let bars =
            intervals.iter().map(|(at, lower, upper)| PathElement::new(vec![(*at, *lower), (*at, *upper)], LINE));
        chart.draw_series(bars).map_err(|error| failed(&error))?;
        area.present().map_err(|error| failed(&error))?;
    }
    Ok(svg)
}
