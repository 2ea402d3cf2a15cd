//! `tollgate labels …`

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use domain::evidence::NewLabel;
use domain::json::Json;
use http::Method;

use super::api::{Api, object, with_query};
use super::transfer::download;
use crate::cli::LabelsCommand;
use crate::output::{Progress, note, pointer};

/// Runs a command on labels.
pub async fn run(api: &Api<'_>, command: LabelsCommand) -> anyhow::Result<ExitCode> {
    match command {
        LabelsCommand::Import { file, source, from_line } => {
            let mut import = Import { api, next_line: from_line, rows: Vec::new(), counts: Counts::default() };
            let ended = import.read(&file, source.as_deref()).await;
            let next = import.next_line;
            ended
                .with_context(|| format!("labels before line {next} are imported; continue with --from-line {next}"))?;
            import.counts.show(api)
        }
        LabelsCommand::Export { preset, csv, output } => {
            let query = [
                ("preset", Some(preset.slug.as_str())),
                ("workspace_id", preset.workspace.as_deref()),
                ("labelled", Some("true")),
                ("format", Some(if csv { "csv" } else { "jsonl" })),
            ];
            download(api, &with_query("/evidence", &query), output.as_deref()).await
        }
    }
}

/// Returns true if the name of a file is that of CSV.
pub fn is_csv(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

/// The effects of an import.
#[derive(Debug, Default)]
struct Counts {
    changed: u64,
    unchanged: u64,
    rejected: u64,
}

impl Counts {
    fn show(&self, api: &Api<'_>) -> anyhow::Result<ExitCode> {
        let Self { changed, unchanged, rejected } = self;
        let [new, old, bad] = [changed, unchanged, rejected].map(ToString::to_string);
        let json = Json::object([("changed", new.as_str()), ("unchanged", &old), ("rejected", &bad)]);
        api.show_text(&json, || format!("{changed} labels changed, {unchanged} unchanged, {rejected} rejected."))?;
        Ok(if *rejected == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// A running import.
struct Import<'a> {
    api: &'a Api<'a>,
    /// The first line whose label is not imported.
    next_line: u64,
    /// Labels that are not sent, with their lines.
    rows: Vec<(u64, Json)>,
    counts: Counts,
}

impl Import<'_> {
    async fn read(&mut self, file: &str, source: Option<&str>) -> anyhow::Result<()> {
        let from = self.next_line;
        let (reader, size): (Box<dyn Read>, _) = if file == "-" {
            (Box::new(std::io::stdin()), None)
        } else {
            let opened = File::open(file).with_context(|| format!("cannot read {file}"))?;
            let size = opened.metadata().ok().map(|about| about.len());
            (Box::new(opened), size)
        };
        let progress = Progress::bytes("labels", size);
        let reader = BufReader::new(progress.of_reader(reader));
        if is_csv(Path::new(file)) {
            let mut lines = csv::ReaderBuilder::new().flexible(true).from_reader(reader);
            let columns = Columns::find(lines.headers()?)?;
            for record in lines.records() {
                let record = record?;
                let line = record.position().map_or(0, csv::Position::line);
                if line >= from {
                    self.add(line, columns.row(&record, source)).await?;
                }
            }
        } else {
            for (line, text) in (1..).zip(reader.lines()) {
                let text = text.with_context(|| format!("line {line}"))?;
                if line >= from && !text.trim().is_empty() {
                    self.add(line, json_row(text.trim_start_matches('\u{feff}'), source)).await?;
                }
            }
        }
        self.send().await?;
        progress.end();
        Ok(())
    }

    async fn add(&mut self, line: u64, row: Result<Json, &'static str>) -> anyhow::Result<()> {
        match row {
            Ok(row) => self.rows.push((line, row)),
            Err(fault) => self.reject(line, fault),
        }
        if self.rows.len() == NewLabel::MAX_IN_A_CALL { self.send().await } else { Ok(()) }
    }

    /// Sends the labels and reports the rejected ones.
    async fn send(&mut self) -> anyhow::Result<()> {
        let Some((last, _)) = self.rows.last() else { return Ok(()) };
        let next_line = last + 1;
        let labels = Json::array(self.rows.iter().map(|(_, row)| row.text()));
        let done = self.api.call(Method::POST, "/labels", Some(&object(&[("labels", Some(labels))]))).await?;
        let number = |json: &Json, at: &str| pointer(json, at).and_then(|number| number.text().parse::<u64>().ok());
        let errors = pointer(&done, "/data/errors").and_then(|errors| errors.elements()).unwrap_or_default();
        for error in errors {
            let index = number(&error, "/index").and_then(|index| usize::try_from(index).ok());
            let line = index.and_then(|index| self.rows.get(index)).map_or(0, |(line, _)| *line);
            let message = pointer(&error, "/message").and_then(|message| message.as_string());
            self.reject(line, message.as_deref().unwrap_or("rejected"));
        }
        self.counts.changed += number(&done, "/data/changed").unwrap_or_default();
        self.counts.unchanged += number(&done, "/data/unchanged").unwrap_or_default();
        self.rows.clear();
        self.next_line = next_line;
        Ok(())
    }

    fn reject(&mut self, line: u64, fault: &str) {
        self.counts.rejected += 1;
        note(&format!("line {line}: {fault}"));
    }
}

/// The positions of the columns of a CSV file.
struct Columns {
    generation_id: usize,
    question: usize,
    label: usize,
    source: Option<usize>,
}

impl Columns {
    fn find(head: &csv::StringRecord) -> anyhow::Result<Self> {
        let named = |names: &[&str]| head.iter().position(|name| names.contains(&name.trim_start_matches('\u{feff}')));
        let found = [["generation_id"], ["question"], ["label"]].map(|name| named(&name));
        ensure!(found.iter().all(Option::is_some), "the columns must include generation_id, question and label");
        let [generation_id, question, label] = found.map(Option::unwrap_or_default);
        Ok(Self { generation_id, question, label, source: named(&["source", "label_source"]) })
    }

    fn row(&self, record: &csv::StringRecord, source: Option<&str>) -> Result<Json, &'static str> {
        let cell = |place: usize| record.get(place).map(Json::string).ok_or("too few columns");
        let own = self.source.and_then(|place| record.get(place)).filter(|own| !own.is_empty());
        let label = cell(self.label)?;
        label_row(&cell(self.generation_id)?, &cell(self.question)?, &label, own.or(source))
    }
}

/// Reads a label, or an answer of an export with its label.
fn json_row(text: &str, source: Option<&str>) -> Result<Json, &'static str> {
    let json = Json::parse(text).map_err(|_| "not a JSON object")?;
    let at = |path: &str| pointer(&json, path).ok_or("lacks generation_id, question or label");
    let own = pointer(&json, "/label/source").or_else(|| pointer(&json, "/source")).and_then(|own| own.as_string());
    let label = at("/label/value").or_else(|_| at("/label"))?;
    label_row(&at("/generation_id")?, &at("/question")?, &label, own.as_deref().or(source))
}

fn label_row(id: &Json, question: &Json, label: &Json, source: Option<&str>) -> Result<Json, &'static str> {
    let source = Json::string(source.ok_or("has no source; --source gives one")?);
    let members = [("generation_id", id), ("question", question), ("label", label), ("source", &source)];
    Ok(Json::object(members.map(|(name, value)| (name, value.text()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_both_formats_are_labels() {
        let expected = r#"{"generation_id":"g","question":"q","label":"a, b","source":"human"}"#;
        let json = |text: &str| json_row(text, Some("system")).map(|row| row.text().to_owned());
        assert_eq!(json(expected).as_deref(), Ok(expected));
        let exported = r#"{"generation_id":"g","question":"q","score":1,"label":{"value":"a, b","source":"human"}}"#;
        assert_eq!(json(exported).as_deref(), Ok(expected));
        let bare = json(r#"{"generation_id":"g","question":"q","label":2}"#);
        assert_eq!(bare.as_deref(), Ok(r#"{"generation_id":"g","question":"q","label":2,"source":"system"}"#));
        assert!(json("{}").is_err() && json("x").is_err());
        let text = "question,label_source,label,generation_id\nq,human,\"a, b\",g\nq,,a,g\nq\n";
        let mut lines = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let columns = Columns::find(lines.headers().unwrap()).unwrap();
        let rows: Vec<_> = lines.records().map(|record| columns.row(&record.unwrap(), None)).collect();
        assert_eq!(rows[0].as_ref().map(Json::text), Ok(expected));
        assert_eq!(rows[1].as_ref().unwrap_err(), &"has no source; --source gives one");
        assert_eq!(rows[2].as_ref().unwrap_err(), &"too few columns");
        assert!(Columns::find(&csv::StringRecord::from(vec!["label"])).is_err());
    }
}
