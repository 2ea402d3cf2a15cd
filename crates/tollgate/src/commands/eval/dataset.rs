//! Datasets: labelled items as JSON lines or as CSV.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};

use domain::json::{JsonKind, unknown_name};
use domain::question::Question;
use domain::statistics::Decision;
use sha2::{Digest as _, Sha256};

use crate::commands::backup::hex;
use crate::commands::labels::is_csv;
use crate::commands::prelude::*;
use crate::commands::records::{RecordReader, check_width, csv_cells};

/// The most bytes of a record.
const MAX_RECORD_BYTES: usize = 64 << 20;

/// The most errors that are shown.
const MAX_SHOWN: usize = 10;

/// The hexadecimal digits of an id.
const ID_CHARACTERS: usize = 16;

/// The member or the column of the state.
const STATE: &str = "state";

/// An item of a dataset.
#[derive(Debug)]
pub struct Item {
    /// The beginning of the state's hash: a corrected label does not change it.
    pub id: String,
    /// The state.
    pub state: Json,
    /// The labels by question, as [`Decision::to_label`] writes them.
    pub labels: Json,
}

/// A dataset: items with different states.
#[derive(Debug)]
pub struct Dataset {
    /// The items, in the order of their first lines.
    pub items: Vec<Item>,
    /// The number of further items of the file that repeat the state of one.
    pub repetitions: usize,
}

impl Dataset {
    /// Returns the sentence on repeated states.
    pub fn repetition(&self) -> Option<String> {
        let (repeated, all) = (self.repetitions, self.items.len() + self.repetitions);
        (repeated > 0).then(|| format!("{repeated} of {all} items repeat a state; each state counts once"))
    }
}

/// Reads the items of a dataset: CSV if its name ends so, or JSON lines. Items with the same state are one item with the
/// labels of all: copies are no independent labels.
///
/// # Errors
/// The file cannot be read, or a line is no item, or contradicts an earlier one; the errors are shown by line.
pub fn read(file: &Path, questions: &[Question]) -> anyhow::Result<Dataset> {
    let name = file.display();
    let opened = File::open(file).with_context(|| format!("cannot read {name}"))?;
    let mut records = RecordReader::new(BufReader::new(opened), is_csv(file), MAX_RECORD_BYTES);
    let columns = if is_csv(file) { Some(Columns::read(&mut records, questions)) } else { None };
    let columns = columns.transpose().with_context(|| format!("cannot read {name}"))?;
    let (mut states, mut errors) = (States::default(), 0_usize);
    while let Some((number, record)) = records.read().with_context(|| format!("cannot read {name}"))? {
        let line = record.map_err(anyhow::Error::msg).and_then(|text| match &columns {
            Some(columns) => columns.line(&csv_cells(&text).map_err(anyhow::Error::msg)?),
            None => Ok(text),
        });
        if let Err(error) = line.and_then(|line| states.add(number, read_item(&line, questions)?, questions)) {
            errors += 1;
            if errors <= MAX_SHOWN {
                note(&format!("{name}, line {number}: {error:#}"));
            }
        }
    }
    ensure!(errors == 0, "{} in {name}; nothing was asked", counted(errors as u64, "invalid line"));
    ensure!(!states.items.is_empty(), "{name} has no items");
    Ok(states.dataset(questions))
}

/// An item as a line has it: its state, and its labels by the positions of their questions.
type ReadItem = (Json, Vec<Option<Decision>>);

/// The labels of a state by the positions of their questions, each with the first line that has it.
type StateLabels = Vec<Option<(Decision, u64)>>;

/// The items of the lines so far.
#[derive(Default)]
struct States {
    /// The id, the state and the labels of each item.
    items: Vec<(String, Json, StateLabels)>,
    /// The positions of the items by id.
    positions: HashMap<String, usize>,
    repetitions: usize,
}

impl States {
    /// Adds the item of a line, or its labels to the item with its state.
    ///
    /// # Errors
    /// An earlier line has another label for the same state.
    fn add(&mut self, line: u64, (state, labels): ReadItem, questions: &[Question]) -> anyhow::Result<()> {
        let id: String = hex(Sha256::new_with_prefix(state.text())).chars().take(ID_CHARACTERS).collect();
        let labels = labels.into_iter().map(|label| label.map(|label| (label, line)));
        let Some(position) = self.positions.get(&id) else {
            self.positions.insert(id.clone(), self.items.len());
            self.items.push((id, state, labels.collect()));
            return Ok(());
        };
        self.repetitions += 1;
        let Some((.., known)) = self.items.get_mut(*position) else { return Ok(()) };
        for ((known, label), question) in known.iter_mut().zip(labels).zip(questions) {
            match (&known, label) {
                (None, label) => *known = label,
                (Some((earlier, first)), Some((label, _))) if *earlier != label => {
                    let [earlier, label] = [*earlier, label].map(|label| written(label, question));
                    bail!("labels.{}: {label}, but line {first} has {earlier} for the same state", question.name);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn dataset(self, questions: &[Question]) -> Dataset {
        let item = |(id, state, labels): (String, Json, StateLabels)| {
            let labels = questions.iter().zip(labels).filter_map(|(question, label)| {
                let (label, _) = label?;
                Some((question.name.as_str(), written(label, question)))
            });
            let labels: Vec<(&str, String)> = labels.collect();
            let labels = Json::object(labels.iter().map(|(name, label)| (*name, label.as_str())));
            Item { id, state, labels }
        };
        Dataset { items: self.items.into_iter().map(item).collect(), repetitions: self.repetitions }
    }
}

/// Returns a label of a question as JSON.
fn written(label: Decision, question: &Question) -> String {
    // A label that was read from JSON can be written.
    label.to_label(&question.kind).map_or_else(|| "null".to_owned(), |label| label.text().to_owned())
}

/// The columns of a CSV file: the state, or a question.
struct Columns<'a>(Vec<Option<&'a Question>>);

impl<'a> Columns<'a> {
    fn read<R: BufRead>(records: &mut RecordReader<R>, questions: &'a [Question]) -> anyhow::Result<Self> {
        let head = records.read()?.map_or(Ok(String::new()), |(_, head)| head).map_err(anyhow::Error::msg)?;
        Self::find(&csv_cells(&head).map_err(anyhow::Error::msg)?, questions)
    }

    fn find(head: &csv::StringRecord, questions: &'a [Question]) -> anyhow::Result<Self> {
        let mut names = BTreeSet::new();
        let mut columns = Vec::new();
        for name in head {
            ensure!(names.insert(name), "the column {name:?} is there twice");
            let question = questions.iter().find(|question| question.name == name);
            if question.is_none() && name != STATE {
                let valid: Vec<&str> = questions.iter().map(|question| question.name.as_str()).collect();
                bail!("the column {name:?} is unknown; valid: {STATE}, {}", valid.join(", "));
            }
            columns.push(question.filter(|_| name != STATE));
        }
        ensure!(names.contains(STATE), "the column {STATE:?} is missing");
        Ok(Self(columns))
    }

    /// Returns the line of JSON with the item of a row.
    fn line(&self, row: &csv::StringRecord) -> anyhow::Result<String> {
        check_width(row, self.0.len()).map_err(anyhow::Error::msg)?;
        let (mut state, mut labels) = (Json::string(""), Vec::new());
        for (column, cell) in self.0.iter().zip(row) {
            match column {
                None => state = Json::string(cell),
                Some(question) if !cell.is_empty() => labels.push((question.name.as_str(), Json::string(cell))),
                Some(_) => {}
            }
        }
        let labels = Json::object(labels.iter().map(|(name, label)| (*name, label.text())));
        Ok(Json::object([(STATE, state.text()), ("labels", labels.text())]).text().to_owned())
    }
}

/// Reads an item.
fn read_item(line: &str, questions: &[Question]) -> anyhow::Result<ReadItem> {
    let item = Json::parse(line)?;
    let (mut state, mut labels) = (None, None);
    for (name, value) in item.members().context("must be a JSON object with state and labels")? {
        let member = match name.as_str() {
            STATE => &mut state,
            "labels" => &mut labels,
            _ => bail!(unknown_name("member", &name, [STATE, "labels"])),
        };
        ensure!(member.replace(value).is_none(), "{name}: is there twice");
    }
    let labels = labels.context("labels: must be an object that maps questions to labels")?;
    let labels = read_labels(&labels, questions)?;
    let state = state.context("state: must be present")?;
    // It would be asked, and paid, for nothing.
    ensure!(!is_empty(&state), "state: is empty");
    ensure!(labels.iter().any(Option::is_some), "labels: has no label");
    Ok((state, labels))
}

/// Returns true for a state without content.
fn is_empty(state: &Json) -> bool {
    match state.kind() {
        JsonKind::Null => true,
        JsonKind::String => state.as_string().is_some_and(|text| text.trim().is_empty()),
        JsonKind::Array => state.elements().is_some_and(|elements| elements.is_empty()),
        JsonKind::Object => state.members().is_some_and(|members| members.is_empty()),
        _ => false,
    }
}

/// Reads the labels of an item, by the positions of their questions. A label that is null is none.
///
/// # Errors
/// A question is unknown, or does not have its label.
pub fn read_labels(labels: &Json, questions: &[Question]) -> anyhow::Result<Vec<Option<Decision>>> {
    let mut found = vec![None; questions.len()];
    let mut names = BTreeSet::new();
    for (name, label) in labels.members().context("labels: must be an object that maps questions to labels")? {
        let position = questions.iter().position(|question| question.name == name);
        let position = position.with_context(|| {
            let known = questions.iter().map(|question| question.name.as_str());
            format!("labels: {}", unknown_name("question", &name, known))
        })?;
        if label.text() != "null" {
            let read = Decision::from_label(&questions[position].kind, &label);
            found[position] = Some(read.with_context(|| format!("labels.{name}"))?);
        }
        ensure!(names.insert(name.clone()), "labels.{name}: is there twice");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use domain::preset::PresetConfig;

    use super::*;

    fn questions() -> Vec<Question> {
        let config = r#"{"model":"a/b","questions":{"refund":{"type":"noul","instructions":"?"},
            "heat":{"type":"score","instructions":"?","criteria":["calm","furious"]}}}"#;
        PresetConfig::read(&Json::parse(config).unwrap()).unwrap().questions.typed.unwrap().to_vec()
    }

    #[test]
    fn item_has_state_and_labels() {
        let read = |line: &str| read_item(line, &questions()).unwrap();
        let (state, labels) = read(r#"{"labels":{"heat":1,"refund":null},"state":{"a":[1.50]}}"#);
        assert_eq!(state.text(), r#"{"a":[1.50]}"#);
        assert_eq!(labels, [None, Some(Decision::Score(1))]);
        let (_, written) = read(r#"{"labels":{"heat":"1","refund":"false"},"state":"s"}"#);
        assert_eq!(written, [Some(Decision::Noul(false)), Some(Decision::Score(1))]);
    }

    /// Reads JSON lines.
    fn read_lines(lines: &[&str]) -> anyhow::Result<Dataset> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        super::read(file.path(), &questions())
    }

    #[test]
    fn copies_of_a_state_are_one_item_with_the_labels_of_all() {
        let read = read_lines(&[
            r#"{"state":{"a":[1.50]},"labels":{"heat":1}}"#,
            r#"{"state":"x","labels":{"refund":"true"}}"#,
            r#"{"state":{"a":[1.50]}, "labels":{"heat":1}}"#,
            r#"{"labels":{"heat":"1","refund":false},"state":{"a":[1.50]}}"#,
        ]);
        let read = read.unwrap();
        let found: Vec<_> = read.items.iter().map(|item| (item.state.text(), item.labels.text())).collect();
        assert_eq!(found, [(r#"{"a":[1.50]}"#, r#"{"refund":false,"heat":1}"#), (r#""x""#, r#"{"refund":true}"#)]);
        assert_eq!(read.repetition().as_deref(), Some("2 of 4 items repeat a state; each state counts once"));
        assert!(read.items.iter().all(|item| item.id.len() == 16) && read.items[0].id != read.items[1].id);
        assert_eq!(read_lines(&[r#"{"state":"x","labels":{"heat":1}}"#]).unwrap().repetition(), None);
    }

    #[test]
    fn contradictory_labels_of_a_state_are_an_error_with_both_lines() {
        let lines = [
            r#"{"state":"x","labels":{"heat":1}}"#,
            r#"{"state":"x","labels":{"heat":1,"refund":true}}"#,
            r#"{"state":"x","labels":{"refund":false}}"#,
        ];
        let mut states = States::default();
        for (number, line) in (1..).zip(&lines[..2]) {
            states.add(number, read_item(line, &questions()).unwrap(), &questions()).unwrap();
        }
        let error = states.add(3, read_item(lines[2], &questions()).unwrap(), &questions()).unwrap_err();
        assert_eq!(error.to_string(), "labels.refund: false, but line 2 has true for the same state");
        let error = read_lines(&lines).unwrap_err().to_string();
        assert!(error.starts_with("1 invalid line in ") && error.ends_with("nothing was asked"), "{error}");
    }

    #[test]
    fn invalid_item_is_an_error_with_its_reason() {
        for (line, reason) in [
            ("[]", "must be a JSON object"),
            (r#"{"state":"x"}"#, "labels: must be an object"),
            (r#"{"state":"x","labels":[]}"#, "labels: must be an object"),
            (r#"{"labels":{"heat":1}}"#, "state: must be present"),
            (r#"{"state":"x","label":{}}"#, "the nearest known member is \"labels\""),
            (r#"{"state":"x","labels":{"refnd":true}}"#, "the nearest known question is \"refund\""),
            (r#"{"state":"x","labels":{"refund":"yes"}}"#, "labels.refund: \"yes\" is not a label"),
            (r#"{"state":"x","labels":{"heat":2}}"#, "valid: 0, 1"),
            (r#"{"state":"x","labels":{"heat":1,"heat":0}}"#, "labels.heat: is there twice"),
            (r#"{"state":"x","state":"y","labels":{"heat":1}}"#, "state: is there twice"),
            (r#"{"state":"x","labels":{}}"#, "labels: has no label"),
            (r#"{"state":"x","labels":{"heat":null}}"#, "labels: has no label"),
            (r#"{"state":" \n","labels":{"heat":1}}"#, "state: is empty"),
            (r#"{"state":null,"labels":{"heat":1}}"#, "state: is empty"),
            (r#"{"state":[],"labels":{"heat":1}}"#, "state: is empty"),
            (r#"{"state":{ },"labels":{"heat":1}}"#, "state: is empty"),
            ("{", ""),
        ] {
            let error = format!("{:#}", read_item(line, &questions()).unwrap_err());
            assert!(error.contains(reason), "{line}: {error}");
        }
    }

    #[test]
    fn invalid_lines_are_counted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "\u{feff}{\"state\":\"x\",\"labels\":{\"heat\":1}}\n\n[]\n{}\n").unwrap();
        let error = read(file.path(), &questions()).unwrap_err().to_string();
        assert!(error.starts_with("2 invalid lines in ") && error.ends_with("nothing was asked"), "{error}");
        std::fs::write(file.path(), b"{\"state\":\"x\",\"labels\":{\"heat\":1}}\n\xff\n").unwrap();
        let error = read(file.path(), &questions()).unwrap_err().to_string();
        assert!(error.starts_with("1 invalid line in "), "{error}");
        std::fs::write(file.path(), "\n").unwrap();
        assert!(read(file.path(), &questions()).unwrap_err().to_string().ends_with("has no items"));
    }

    /// Reads a CSV file; returns the labels of its items with their states.
    fn read_csv(text: &[u8]) -> anyhow::Result<Vec<(String, String)>> {
        let file = tempfile::Builder::new().suffix(".CSV").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let items = read(file.path(), &questions())?.items;
        Ok(items.iter().map(|item| (item.state.text().to_owned(), item.labels.text().to_owned())).collect())
    }

    #[test]
    fn csv_has_a_column_for_the_state_and_for_each_labelled_question() {
        let text = "\u{feff}heat,\"state\",refund\r\n1,\"a \"\"b\"\",\r\nc\",true\r\n\r\n,e,false\r\n0,d,\r\n";
        let expected = [
            (r#""a \"b\",\r\nc""#, r#"{"refund":true,"heat":1}"#),
            (r#""e""#, r#"{"refund":false}"#),
            (r#""d""#, r#"{"heat":0}"#),
        ];
        assert_eq!(read_csv(text.as_bytes()).unwrap(), expected.map(|(state, labels)| (state.into(), labels.into())));
    }

    #[test]
    fn csv_is_checked_by_line() {
        for (text, reason) in [
            ("", "the column \"state\" is missing"),
            ("refund\ntrue\n", "the column \"state\" is missing"),
            ("state,refnd\nx,true\n", "the column \"refnd\" is unknown; valid: state, refund, heat"),
            ("state,refund,state\nx,,y\n", "the column \"state\" is there twice"),
            ("state,refund\n\"x,true\ny,false\n", "a quote is not closed"),
            ("state,refund\n", "has no items"),
            ("state,refund\nx,yes\ny\nz,true,1\nv,true\n,true\nw,\n", "5 invalid lines in "),
        ] {
            let error = format!("{:#}", read_csv(text.as_bytes()).unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
        let error = read_csv(b"state,heat\n\xff,1\nx,1\n").unwrap_err().to_string();
        assert!(error.starts_with("1 invalid line in "), "{error}");
        let questions = questions();
        let columns = Columns::find(&csv::StringRecord::from(vec!["state", "refund"]), &questions).unwrap();
        let line = |row: &[&str]| columns.line(&csv::StringRecord::from(row.to_vec()));
        assert_eq!(line(&["x"]).unwrap_err().to_string(), "has 1 cell, the head has 2");
        let error = format!("{:#}", read_item(&line(&["x", "yes"]).unwrap(), &questions).unwrap_err());
        assert_eq!(error, "labels.refund: \"yes\" is not a label of this question; valid: true, false");
    }
}
