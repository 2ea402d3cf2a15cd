//! The report as one page, without scripts and without anything that is loaded.

use std::fmt::Write as _;

use domain::evaluation::Report;

use super::tables::{
    CASCADE_HEADS, COMPARISON_HEADS, HEADS, cascade_rows, cascade_title, comparison_row, findings, row,
};
use super::{charts, sentences};

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
            let (risk, reliability) = (charts::risk_coverage(group)?, charts::reliability(group)?);
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
