//! `tollgate labels …`

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use domain::evidence::NewLabel;
use domain::json::JsonKind;
use domain::text::unquote_formula;
use http::Request;
use http::header::CONTENT_TYPE;
use http_client::body::full;
use sha2::{Digest as _, Sha256};

use super::backup::hex;
use super::records::{OpenQuote, RecordReader, check_width, csv_cells};
use super::transfer::download;
use crate::cli::LabelsCommand;
use crate::commands::prelude::*;

/// The most bytes of a record.
const MAX_RECORD_BYTES: usize = 64 << 10;

/// The most columns that an error names, and the most characters of each.
const MAX_NAMED: (usize, usize) = (10, 40);

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
            let (rows, faults, counts) = (Vec::new(), Vec::new(), Counts::default());
            let mut import = Import { api, next_line: from_line, read_lines: 0, rows, faults, counts };
            let ended = import.read(&file, source.as_deref()).await;
            ended.map_err(|error| import.with_advice(error, from_line))?;
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
        api.show_text(&json, || format!("Labels: {changed} changed, {unchanged} unchanged, {rejected} rejected."))?;
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
    /// Rejected lines that are not shown, with their reasons.
    faults: Vec<(u64, String)>,
    counts: Counts,
}

impl Import<'_> {
    /// Adds to an error how an import that began with the line `first` can continue, if any label is imported.
    fn with_advice(&self, error: anyhow::Error, first: u64) -> anyhow::Error {
        let next = self.next_line;
        match error.downcast_ref() {
            Some(OpenQuote { line, .. }) if *line > first => {
                let advice = format!(
                    "labels before line {line} are imported; close the quote and continue with --from-line {line}"
                );
                error.context(advice)
            }
            None if next > first => {
                error.context(format!("labels before line {next} are imported; continue with --from-line {next}"))
            }
            _ => error,
        }
    }

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
        let columns = if is_csv { Some(Columns::read(&mut records)) } else { None };
        let columns = columns.transpose().with_context(|| format!("{file} cannot be imported"))?;
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
                Err(fault) => self.faults.push((line, fault)),
            }
            if self.rows.len() + self.faults.len() == NewLabel::MAX_IN_A_CALL {
                self.send().await?;
            }
        };
        self.send().await?;
        progress.end();
        ended
    }

    /// Sends the labels and reports the rejected lines in their order.
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
        self.counts.rejected += self.faults.len() as u64;
        self.faults.sort_by_key(|(line, _)| *line);
        for (line, fault) in self.faults.drain(..) {
            note(&format!("line {line}: {fault}"));
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
            self.faults.push((line, message.unwrap_or_else(|| "rejected".to_owned())));
        }
        self.counts.changed += number(done, "/data/changed").unwrap_or_default();
        self.counts.unchanged += number(done, "/data/unchanged").unwrap_or_default();
    }
}

/// The positions of the columns of a CSV file.
struct Columns {
    generation_id: usize,
    question: usize,
    label: usize,
    source: Option<usize>,
    /// The number of all columns.
    count: usize,
}

impl Columns {
    fn read<R: BufRead>(records: &mut RecordReader<R>) -> anyhow::Result<Self> {
        let head = records.read()?.map_or(Ok(String::new()), |(_, head)| head).map_err(anyhow::Error::msg)?;
        Self::find(&csv_cells(&head).map_err(anyhow::Error::msg)?)
    }

    fn find(head: &csv::StringRecord) -> anyhow::Result<Self> {
        let named = |names: &[&str]| {
            let mut found = (0..).zip(head).filter(|(_, name)| names.contains(name));
            let first = found.next();
            match found.next() {
                Some((_, other)) => Err(anyhow!("the column {other:?} is there twice")),
                None => Ok(first.map(|(position, _)| position)),
            }
        };
        let required = |name: &str| {
            let (columns, characters) = MAX_NAMED;
            let shown = |name: &str| format!("{:?}", name.chars().take(characters).collect::<String>());
            let found: Vec<String> = head.iter().take(columns).map(shown).collect();
            let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
            named(&[name])?.with_context(|| {
                format!(
                    "the columns must include generation_id, question and label, separated by commas; found: {found}"
                )
            })
        };
        Ok(Self {
            generation_id: required("generation_id")?,
            question: required("question")?,
            label: required("label")?,
            source: named(&["source", "label_source"])?,
            count: head.len(),
        })
    }

    fn row(&self, record: &str, source: Option<&str>) -> Result<Json, String> {
        let cells = csv_cells(record)?;
        check_width(&cells, self.count)?;
        let cell = |position: usize| Json::string(unquote_formula(cells.get(position).unwrap_or_default()));
        let own = self.source.and_then(|position| cells.get(position)).filter(|own| !own.is_empty());
        label_row(&cell(self.generation_id), &cell(self.question), &cell(self.label), own.or(source))
    }
}

/// Reads a label, or an answer of an export with its label.
fn json_row(text: &str, source: Option<&str>) -> Result<Json, String> {
    let json = Json::parse(text).ok().filter(|json| json.kind() == JsonKind::Object).ok_or("not a JSON object")?;
    let required = |json: &Json, name| member(json, name)?.ok_or("lacks generation_id, question or label".to_owned());
    let label = required(&json, "label")?;
    let (label, own) = if label.kind() == JsonKind::Object {
        (required(&label, "value")?, member(&label, "source")?)
    } else {
        (label, None)
    };
    let own = own.or(member(&json, "source")?).and_then(|own| own.as_string());
    let [id, question] = [required(&json, "generation_id")?, required(&json, "question")?];
    label_row(&id, &question, &label, own.as_deref().or(source))
}

/// Returns a member of an object, if it has it.
///
/// # Errors
/// The object has it twice.
fn member(json: &Json, name: &str) -> Result<Option<Json>, String> {
    let members = json.members().unwrap_or_default();
    let mut found = members.into_iter().filter(|(other, _)| other == name);
    let first = found.next().map(|(_, value)| value);
    if found.next().is_none() { Ok(first) } else { Err(format!("{name}: is there twice")) }
}

fn label_row(id: &Json, question: &Json, label: &Json, source: Option<&str>) -> Result<Json, String> {
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
        assert_eq!(json(expected).unwrap(), expected);
        let exported = r#"{"generation_id":"g","question":"q","score":1,"label":{"value":"a, b","source":"human"}}"#;
        assert_eq!(json(exported).unwrap(), expected);
        let bare = json(r#"{"generation_id":"g","question":"q","label":2}"#);
        assert_eq!(bare.unwrap(), r#"{"generation_id":"g","question":"q","label":2,"source":"system"}"#);
        for (text, reason) in [
            ("x", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("{}", "lacks generation_id, question or label"),
            (r#"{"generation_id":"g","question":"q","label":{}}"#, "lacks generation_id, question or label"),
            (r#"{"generation_id":"g","question":"q","label":1,"label":2}"#, "label: is there twice"),
            (
                r#"{"generation_id":"g","question":"q","label":1,"source":"human","source":"human"}"#,
                "source: is there twice",
            ),
            (r#"{"generation_id":"g","question":"q","label":{"value":1,"value":1}}"#, "value: is there twice"),
            (r#"{"generation_id":"g","generation_id":"h","question":"q","label":1}"#, "generation_id: is there twice"),
        ] {
            assert_eq!(json(text).unwrap_err(), reason, "{text}");
        }
    }

    #[test]
    fn csv_rows_are_labels() {
        let expected = r#"{"generation_id":"g","question":"q","label":"a, b","source":"human"}"#;
        let text = "question,label_source,label,generation_id\nq,human,\"a, b\",g\nq,,a,g\nq\nq,human,a,g,\n'=q,system,'-1,g\n";
        let mut records = RecordReader::new(text.as_bytes(), true, MAX_RECORD_BYTES);
        let columns = Columns::read(&mut records).unwrap();
        let next = || Some(columns.row(&records.read().unwrap()?.1.unwrap(), None));
        let rows: Vec<_> = std::iter::from_fn(next).collect();
        assert_eq!(rows[0].as_ref().unwrap().text(), expected);
        assert_eq!(rows[1].as_ref().unwrap_err(), "has no source; --source gives one");
        assert_eq!(rows[2].as_ref().unwrap_err(), "has 1 cell, the head has 4");
        assert_eq!(rows[3].as_ref().unwrap_err(), "has 5 cells, the head has 4");
        let quoted = r#"{"generation_id":"g","question":"=q","label":"-1","source":"system"}"#;
        assert_eq!(rows[4].as_ref().unwrap().text(), quoted);
    }

    #[test]
    fn invalid_head_is_an_error_with_the_columns_found() {
        let find = |head: &[&str]| Columns::find(&csv::StringRecord::from(head.to_vec())).err().unwrap().to_string();
        for (head, found) in [
            (&[][..], "none"),
            (&["a;b"], r#""a;b""#),
            (&["Generation_ID", "question", "label"], r#""Generation_ID", "question", "label""#),
        ] {
            assert!(find(head).ends_with(&format!("separated by commas; found: {found}")), "{}", find(head));
        }
        let long = "x".repeat(9_000);
        assert!(find(&vec![long.as_str(); 9_000]).len() < 1_000);
        let twice = find(&["generation_id", "question", "label", "label"]);
        assert_eq!(twice, "the column \"label\" is there twice");
        assert!(find(&["generation_id", "question", "label", "source", "label_source"]).ends_with("is there twice"));
    }
}
