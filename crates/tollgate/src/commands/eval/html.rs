//! The report as one page, without scripts and without anything that is loaded.

use std::fmt::Write as _;

use anyhow::anyhow;
use domain::evaluation::{GroupReport, Report};
use plotters::prelude::*;

use super::sentences;
use super::tables::{
    CASCADE_HEADS, COMPARISON_HEADS, HEADS, cascade_rows, cascade_title, comparison_row, curve, findings, row,
};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#222}\
                     table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #ddd;padding:.25rem .6rem;\
                     text-align:left}th{background:#f4f4f4;font-weight:600}.charts{display:flex;flex-wrap:wrap;gap:1rem}\
                     svg{border:1px solid #ddd}";

/// Returns the page.
///
/// # Errors
/// A chart cannot be drawn.
pub fn page(title: &str, report: &Report) -> anyhow::Result<String> {
    let title = escape(title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    // Writing to a string cannot fail.
    let rows: Vec<[String; 11]> = report.groups.iter().map(row).collect();
    page.push_str(&table(HEADS, &rows));
    if let Some(uncounted) = sentences::uncounted(report) {
        let _ = writeln!(page, "<p>{}</p>", escape(&uncounted));
    }
    for group in &report.groups {
        let _ = writeln!(page, "<h2>{}</h2>", escape(&sentences::heading(&group.group)));
        for finding in findings(group, report) {
            let _ = writeln!(page, "<p>{}</p>", escape(&finding));
        }
        if !group.labelled.scored().is_empty() {
            let (risk, reliability) = (risk_coverage(group)?, reliability(group)?);
            let _ = writeln!(page, "<div class=\"charts\">{risk}{reliability}</div>");
        }
    }
    if !report.comparisons.is_empty() {
        let rows: Vec<[String; 7]> = report.comparisons.iter().map(comparison_row).collect();
        let _ = writeln!(page, "<h2>Models on the same items</h2>\n{}", table(COMPARISON_HEADS, &rows));
    }
    for cascade in &report.cascades {
        let (title, finding) = (escape(&cascade_title(cascade)), escape(&sentences::cascade(cascade)));
        let rows = table(CASCADE_HEADS, &cascade_rows(cascade));
        let _ = writeln!(page, "<h2>Cascade: {title}</h2>\n<p>{finding}</p>\n{rows}");
    }
    if let Some(promise) = sentences::promise(report) {
        let _ = writeln!(page, "<p>{}</p>", escape(&promise));
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let mut table = format!("<table>\n<tr><th>{}</th></tr>\n", heads.join("</th><th>"));
    for row in rows {
        let cells = row.each_ref().map(|cell| escape(cell));
        let _ = writeln!(table, "<tr><td>{}</td></tr>", cells.join("</td><td>"));
    }
    table + "</table>\n"
}

/// Escapes a text for HTML. Control characters, which HTML does not permit, and characters that turn the direction of a
/// text are shown as on a terminal.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in crate::output::escape(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

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
