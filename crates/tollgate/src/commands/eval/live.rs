//! The report of stored evidence with its labels, which is read page by page.

use domain::evaluation::{AnswerOrigin, Group, LiveAnswers, ReportSettings, TalliedAnswer};
use domain::evidence::LabelSource;
use domain::statistics::{LabelSelection, Probability, is_error_as_written};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::report::{settings, show};
use crate::cli::EvalReportArgs;
use crate::commands::context::{parse_timestamp, time};
use crate::commands::prelude::*;

/// The rows of a page.
const PAGE: &str = "1000";

#[derive(Deserialize)]
struct Page {
    data: Vec<Row>,
    next_cursor: Option<String>,
}

/// The evidence of one answer.
#[derive(Deserialize)]
struct Row {
    preset_version: u32,
    question: String,
    model: String,
    provider: String,
    wire: String,
    method: String,
    decision: Box<RawValue>,
    score: Option<f64>,
    label: Option<RowLabel>,
    total_cost: Option<Box<RawValue>>,
    latency: Option<u64>,
}

#[derive(Deserialize)]
struct RowLabel {
    value: Box<RawValue>,
    source: String,
}

/// Prints the report of a preset's evidence, and writes it as a page.
///
/// # Errors
/// The evidence cannot be read, or the page cannot be written.
pub async fn show_evidence(api: &Api<'_>, preset: &str, args: &EvalReportArgs) -> anyhow::Result<ExitCode> {
    let decisive_version = match args.preset_version {
        Some(version) => Some(version),
        None => designated_version(api, preset, args.workspace.as_deref()).await?,
    };
    let (progress, mut answers) = (Progress::bytes(format!("Evidence of {preset}"), None), LiveAnswers::default());
    let parse =
        |option: &str, text: &Option<String>| text.as_deref().map(|text| parse_timestamp(option, text)).transpose();
    let [since, until] = [parse("--since", &args.since)?, parse("--until", &args.until)?].map(|at| at.map(time));
    let (version, mut cursor) = (args.preset_version.map(|version| version.to_string()), None::<String>);
    loop {
        let query = [
            ("preset", Some(preset)),
            ("version", version.as_deref()),
            ("workspace_id", args.workspace.as_deref()),
            ("since", since.as_deref()),
            ("until", until.as_deref()),
            ("limit", Some(PAGE)),
            ("cursor", cursor.as_deref()),
        ];
        let page = api.get(&with_query("/evidence", &query)).await?;
        progress.add(page.text().len());
        let page: Page = serde_json::from_str(page.text()).context("the evidence cannot be read")?;
        for row in page.data {
            let (group, answer) = row.answer(args.report.tolerance).context("the evidence cannot be read")?;
            answers.add(group, answer);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    progress.end();
    // No label has a source that says that its answer was drawn at random.
    let settings = settings(&args.report, LabelSelection::Volunteered);
    let report = answers.report(&ReportSettings { decisive_version, ..settings });
    if report.groups.is_empty() {
        note(&no_evidence(preset, args.preset_version, since.as_deref(), until.as_deref()));
    }
    show(api.context, preset, &format!("{preset}, evidence of answers"), &report, &args.report)
}

/// Returns the sentence on a report without any answer.
fn no_evidence(preset: &str, version: Option<u32>, since: Option<&str>, until: Option<&str>) -> String {
    let version = version.map(|version| format!(" of version {version}"));
    let range = match (since, until) {
        (None, None) => None,
        (Some(since), None) => Some(format!(" of requests since {since}")),
        (None, Some(until)) => Some(format!(" of requests before {until}")),
        (Some(since), Some(until)) => Some(format!(" of requests since {since} and before {until}")),
    };
    let of_all = if range.is_none() { ": its answers add a row for each question" } else { "" };
    format!("the preset {preset:?} has no evidence{}{}{of_all}", version.unwrap_or_default(), range.unwrap_or_default())
}

/// Returns the version that requests use now: a preset may have been rolled back.
async fn designated_version(api: &Api<'_>, preset: &str, workspace: Option<&str>) -> anyhow::Result<Option<u32>> {
    let path = with_query(&format!("/presets/{}", segment(preset)), &[("workspace_id", workspace)]);
    let preset = api.get(&path).await?;
    Ok(pointer(&preset, "/data/designated_version/version").and_then(|version| version.text().parse().ok()))
}

impl Row {
    fn answer(self, tolerance: usize) -> anyhow::Result<(Group, TalliedAnswer)> {
        let Self { preset_version, question, model, provider, wire, method, .. } = self;
        let decision = Json::from(self.decision);
        let read_label = |label: RowLabel| {
            let source = LabelSource::from_name(&label.source);
            let source = source.with_context(|| format!("the source {:?} of a label is unknown", label.source))?;
            anyhow::Ok((is_error_as_written(&decision, &Json::from(label.value), tolerance), source))
        };
        let group = Group { preset_version, question, origin: AnswerOrigin { model, provider, wire, method } };
        let answer = TalliedAnswer {
            score: self.score.map(Probability::new).transpose()?,
            label: self.label.map(read_label).transpose()?,
            missing: None,
            cost: self.total_cost.map(|cost| cost.get().parse()).transpose().context("a cost is no amount")?,
            latency_ms: self.latency,
        };
        Ok((group, answer))
    }
}

#[cfg(test)]
mod tests {
    use domain::money::Usd;

    use super::*;

    const ROW: &str = r#"{"generation_id":"gen-dec-1","preset_version":2,"question":"heat","model":"a/b",
        "provider":"alpha","wire":"system-one","method":"native","decision":2,"score":0.5,"probabilities":null,
        "label":{"value":0,"source":"human"},"total_cost":0.000000000001,"latency":7}"#;

    fn answer(row: &str, tolerance: usize) -> anyhow::Result<(Group, TalliedAnswer)> {
        serde_json::from_str::<Row>(row)?.answer(tolerance)
    }

    #[test]
    fn row_is_an_answer_of_its_group() {
        let (group, read) = answer(ROW, 1).unwrap();
        assert_eq!((group.preset_version, group.question.as_str(), group.origin.model.as_str()), (2, "heat", "a/b"));
        assert_eq!((read.label, read.cost), (Some((true, LabelSource::Human)), Some(Usd::from_pico(1))));
        assert_eq!((read.score, read.latency_ms), (Some(Probability::HALF), Some(7)));
        assert_eq!(answer(ROW, 2).unwrap().1.label, Some((false, LabelSource::Human)));
        let bare = ROW.replace(r#"{"value":0,"source":"human"}"#, "null").replace("0.000000000001", "null");
        let read = answer(&bare.replace(":7", ":null"), 0).unwrap().1;
        assert_eq!((read.label, read.cost, read.latency_ms), (None, None, None));
    }

    #[test]
    fn missing_evidence_is_that_of_the_version_and_the_range() {
        let of_version = no_evidence("a", Some(2), None, None);
        assert_eq!(
            of_version,
            "the preset \"a\" has no evidence of version 2: its answers add a row for each question"
        );
        let [since, until] = [Some("2026-11-30T00:00:00Z"), Some("2026-12-01T00:00:00Z")];
        for (since, until, expected) in [
            (since, None, "since 2026-11-30T00:00:00Z"),
            (None, until, "before 2026-12-01T00:00:00Z"),
            (since, until, "since 2026-11-30T00:00:00Z and before 2026-12-01T00:00:00Z"),
        ] {
            let said = no_evidence("a", None, since, until);
            assert_eq!(said, format!("the preset \"a\" has no evidence of requests {expected}"));
        }
    }

    #[test]
    fn damaged_row_is_an_error() {
        for (text, damaged) in [("\"human\"", "\"lot\""), (":0.5", ":1.5"), ("0.000000000001", "\"x\""), ("2,", "-2,")]
        {
            assert!(answer(&ROW.replacen(text, damaged, 1), 0).is_err(), "{damaged}");
        }
    }
}
