//! `tollgate labels …`

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use domain::evidence::NewLabel;
use domain::text::unquote_formula;
use http::Request;
use http::header::CONTENT_TYPE;
use http_client::body::full;
use sha2::{Digest as _, Sha256};

use super::backup::hex;
use super::records::{RecordReader, csv_cells};
use super::transfer::download;
use crate::cli::LabelsCommand;
use crate::commands::prelude::*;

/// The most bytes of a record.
const MAX_RECORD_BYTES: usize = 64 << 10;

const VERSION_COLUMNS: &[Column] = &[
    ("VERSION", "/version"),
    ("CREATED", "/created_at"),
    ("SOURCE", "/source"),
    ("VALUE", "/value"),
    ("BY", "/created_by"),
];

/// Runs a command on labels.
pub async fn run(api: &Api<'_>, command: LabelsCommand) -> anyhow::Result<ExitCode> {
    match command {
        LabelsCommand::Import { file, source, from_line } => {
            let (rows, counts) = (Vec::new(), Counts::default());
            let mut import = Import { api, next_line: from_line, read_lines: 0, rows, counts };
            let ended = import.read(&file, source.as_deref()).await;
            let next = import.next_line;
            ended
                .with_context(|| format!("labels before line {next} are imported; continue with --from-line {next}"))?;
            import.counts.show(api)
        }
        LabelsCommand::Versions { generation, question } => {
            let query = [("generation_id", Some(generation.as_str())), ("question", Some(question.as_str()))];
            api.show_list(&api.list("/labels", &query).await?, VERSION_COLUMNS)
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
    /// The number of lines that are read.
    read_lines: u64,
    /// Labels that are not sent, with their lines.
    rows: Vec<(u64, Json)>,
    counts: Counts,
}

impl Import<'_> {
    async fn read(&mut self, file: &str, source: Option<&str>) -> anyhow::Result<()> {
        let (reader, size): (Box<dyn Read>, _) = if file == "-" {
            (Box::new(std::io::stdin()), None)
        } else {
            let opened = File::open(file).with_context(|| format!("cannot read {file}"))?;
            let size = opened.metadata().ok().map(|about| about.len());
            (Box::new(opened), size)
        };
        let progress = Progress::bytes("labels", size);
        let reader = BufReader::new(progress.of_reader(reader));
        let is_csv = is_csv(Path::new(file));
        let mut records = RecordReader::new(reader, is_csv, MAX_RECORD_BYTES);
        let columns = if is_csv { Some(Columns::read(&mut records)?) } else { None };
        records.skip_to(self.next_line)?;
        let ended = loop {
            let (line, record) = match records.read() {
                Ok(Some(record)) => record,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            self.read_lines = records.lines;
            match record.and_then(|text| {
                columns.as_ref().map_or_else(|| json_row(&text, source), |columns| columns.row(&text, source))
            }) {
                Ok(row) => self.rows.push((line, row)),
                Err(fault) => self.reject(line, fault),
            }
            if self.rows.len() == NewLabel::MAX_IN_A_CALL {
                self.send().await?;
            }
        };
        self.send().await?;
        progress.end();
        ended
    }

    /// Sends the labels and reports the rejected ones.
    async fn send(&mut self) -> anyhow::Result<()> {
        if let Some((first, _)) = self.rows.first() {
            let labels = Json::array(self.rows.iter().map(|(_, row)| row.text()));
            let body = object(&[("labels", Some(labels))]);
            // The same lines, sent again, change nothing, also if others changed the labels.
            let key = format!("labels-{first}-{}", hex(Sha256::new_with_prefix(body.text())));
            let request = Request::builder()
                .method(Method::POST)
                .header(CONTENT_TYPE, "application/json")
                .header("idempotency-key", key);
            let done = self.api.upload("/labels", request, || Ok(full(body.text().to_owned()))).await?;
            self.count(&done);
            self.rows.clear();
        }
        self.next_line = self.next_line.max(self.read_lines + 1);
        Ok(())
    }

    fn count(&mut self, done: &Json) {
        let number = |json: &Json, at: &str| pointer(json, at).and_then(|number| number.text().parse::<u64>().ok());
        let errors = pointer(done, "/data/errors").and_then(|errors| errors.elements()).unwrap_or_default();
        for error in errors {
            let index = number(&error, "/index").and_then(|index| usize::try_from(index).ok());
            let line = index.and_then(|index| self.rows.get(index)).map_or(0, |(line, _)| *line);
            let message = pointer(&error, "/message").and_then(|message| message.as_string());
            self.reject(line, message.as_deref().unwrap_or("rejected"));
        }
        self.counts.changed += number(done, "/data/changed").unwrap_or_default();
        self.counts.unchanged += number(done, "/data/unchanged").unwrap_or_default();
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
    fn read<R: BufRead>(records: &mut RecordReader<R>) -> anyhow::Result<Self> {
        let head = records.read()?.map_or(Ok(String::new()), |(_, head)| head);
        Self::find(&head.and_then(|head| csv_cells(&head)).map_err(anyhow::Error::msg)?)
    }

    fn find(head: &csv::StringRecord) -> anyhow::Result<Self> {
        let named = |names: &[&str]| head.iter().position(|name| names.contains(&name));
        let found = [["generation_id"], ["question"], ["label"]].map(|name| named(&name));
        ensure!(found.iter().all(Option::is_some), "the columns must include generation_id, question and label");
        let [generation_id, question, label] = found.map(Option::unwrap_or_default);
        Ok(Self { generation_id, question, label, source: named(&["source", "label_source"]) })
    }

    fn row(&self, record: &str, source: Option<&str>) -> Result<Json, &'static str> {
        let cells = csv_cells(record)?;
        let cell = |place: usize| cells.get(place).map(unquote_formula).map(Json::string).ok_or("too few columns");
        let own = self.source.and_then(|place| cells.get(place)).filter(|own| !own.is_empty());
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
        let text = "question,label_source,label,generation_id\nq,human,\"a, b\",g\nq,,a,g\nq\n'=q,system,'-1,g\n";
        let mut records = RecordReader::new(text.as_bytes(), true, MAX_RECORD_BYTES);
        let columns = Columns::read(&mut records).unwrap();
        let next = || Some(columns.row(&records.read().unwrap()?.1.unwrap(), None));
        let rows: Vec<_> = std::iter::from_fn(next).collect();
        assert_eq!(rows[0].as_ref().map(Json::text), Ok(expected));
        assert_eq!(rows[1].as_ref().unwrap_err(), &"has no source; --source gives one");
        assert_eq!(rows[2].as_ref().unwrap_err(), &"too few columns");
        let quoted = r#"{"generation_id":"g","question":"=q","label":"-1","source":"system"}"#;
        assert_eq!(rows[3].as_ref().map(Json::text), Ok(quoted));
        assert!(Columns::find(&csv::StringRecord::from(vec!["label"])).is_err());
    }
}
