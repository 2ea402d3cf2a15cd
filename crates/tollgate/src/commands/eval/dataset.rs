//! Datasets: labelled items as JSON lines or as CSV.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};

use domain::json::unknown_name;
use domain::question::Question;
use domain::statistics::Decision;
use sha2::{Digest as _, Sha256};

use crate::commands::backup::hex;
use crate::commands::labels::is_csv;
use crate::commands::prelude::*;
use crate::commands::records::{RecordReader, csv_cells};

/// The most bytes of a record.
const MAX_RECORD_BYTES: usize = 64 << 20;

/// The most errors that are shown.
const MAX_SHOWN: usize = 10;

/// The member or the column of the state.
const STATE: &str = "state";

/// An item of a dataset.
#[derive(Debug)]
pub struct Item {
    /// The number of items with this state up to it, and the beginning of the state's hash: a corrected label does not
    /// change it.
    pub id: String,
    /// The state.
    pub state: Json,
    /// The labels as they are written.
    pub labels: Json,
}

/// Reads the items of a dataset: CSV if its name ends so, or JSON lines.
///
/// # Errors
/// The file cannot be read, or a line is no item; the errors are shown by line.
pub fn read(file: &Path, questions: &[Question]) -> anyhow::Result<Vec<Item>> {
    let name = file.display();
    let opened = File::open(file).with_context(|| format!("cannot read {name}"))?;
    let mut records = RecordReader::new(BufReader::new(opened), is_csv(file), MAX_RECORD_BYTES);
    let columns = if is_csv(file) { Some(Columns::read(&mut records, questions)) } else { None };
    let columns = columns.transpose().with_context(|| format!("cannot read {name}"))?;
    let (mut items, mut errors, mut counts) = (Vec::new(), 0_usize, BTreeMap::new());
    while let Some((number, record)) = records.read().with_context(|| format!("cannot read {name}"))? {
        let line = record.map_err(anyhow::Error::msg).and_then(|text| match &columns {
            Some(columns) => columns.line(&csv_cells(&text).map_err(anyhow::Error::msg)?),
            None => Ok(text),
        });
        match line.and_then(|line| read_item(&line, questions, &mut counts)) {
            Ok(item) => items.push(item),
            Err(error) => {
                errors += 1;
                if errors <= MAX_SHOWN {
                    note(&format!("{name}, line {number}: {error:#}"));
                }
            }
        }
    }
    ensure!(errors == 0, "{errors} lines of {name} are invalid; nothing was asked");
    ensure!(!items.is_empty(), "{name} has no items");
    Ok(items)
}

/// The columns of a CSV file: the state, or a question.
struct Columns<'a>(Vec<Option<&'a Question>>);

impl<'a> Columns<'a> {
    fn read<R: BufRead>(records: &mut RecordReader<R>, questions: &'a [Question]) -> anyhow::Result<Self> {
        let head = records.read()?.map_or(Ok(String::new()), |(_, head)| head);
        Self::find(&head.and_then(|head| csv_cells(&head)).map_err(anyhow::Error::msg)?, questions)
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
        let (cells, columns) = (row.len(), self.0.len());
        ensure!(cells == columns, "has {cells} cells, the head has {columns}");
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

/// Reads an item. `counts` has the number of items before by state.
fn read_item(line: &str, questions: &[Question], counts: &mut BTreeMap<String, u64>) -> anyhow::Result<Item> {
    let item = Json::parse(line)?;
    let (mut state, mut labels) = (None, None);
    for (name, value) in item.members().context("must be a JSON object with state and labels")? {
        match name.as_str() {
            STATE => state = Some(value),
            "labels" => labels = Some(value),
            _ => bail!(unknown_name("member", &name, [STATE, "labels"])),
        }
    }
    let labels = labels.context("labels: must be an object that maps questions to labels")?;
    read_labels(&labels, questions)?;
    let state = state.context("state: must be present")?;
    let hash = hex(Sha256::new_with_prefix(state.text())).chars().take(16).collect::<String>();
    let count = counts.entry(hash.clone()).or_default();
    *count += 1;
    Ok(Item { id: format!("{count}-{hash}"), state, labels })
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
        let mut counts = BTreeMap::new();
        let mut read = |line: &str| read_item(line, &questions(), &mut counts).unwrap();
        let item = read(r#"{"labels":{"heat":1,"refund":null},"state":{"a":[1.50]}}"#);
        assert_eq!(item.state.text(), r#"{"a":[1.50]}"#);
        assert_eq!(read_labels(&item.labels, &questions()).unwrap(), [None, Some(Decision::Score(1))]);
        let written = read(r#"{"labels":{"heat":"1","refund":"false"},"state":"s"}"#);
        let expected = [Some(Decision::Noul(false)), Some(Decision::Score(1))];
        assert_eq!(read_labels(&written.labels, &questions()).unwrap(), expected);
        assert!(item.id.starts_with("1-") && item.id.len() == 18, "{}", item.id);
        let (same, other) =
            (read(r#"{"state":{"a":[1.50]}, "labels":{"heat":0}}"#), read(r#"{"state":"x","labels":{}}"#));
        assert_eq!((&same.id[2..], same.id.starts_with("2-")), (&item.id[2..], true));
        assert!(other.id.starts_with("1-") && other.id != item.id, "{}", other.id);
    }

    #[test]
    fn invalid_item_is_an_error_with_its_reason() {
        for (line, reason) in [
            ("[]", "must be a JSON object"),
            (r#"{"state":"x"}"#, "labels: must be an object"),
            (r#"{"state":"x","labels":[]}"#, "labels: must be an object"),
            (r#"{"labels":{}}"#, "state: must be present"),
            (r#"{"state":"x","label":{}}"#, "the nearest known member is \"labels\""),
            (r#"{"state":"x","labels":{"refnd":true}}"#, "the nearest known question is \"refund\""),
            (r#"{"state":"x","labels":{"refund":"yes"}}"#, "labels.refund: \"yes\" is not a label"),
            (r#"{"state":"x","labels":{"heat":2}}"#, "valid: 0, 1"),
            (r#"{"state":"x","labels":{"heat":1,"heat":0}}"#, "labels.heat: is there twice"),
            ("{", ""),
        ] {
            let error = format!("{:#}", read_item(line, &questions(), &mut BTreeMap::new()).unwrap_err());
            assert!(error.contains(reason), "{line}: {error}");
        }
    }

    #[test]
    fn invalid_lines_are_counted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "\u{feff}{\"state\":\"x\",\"labels\":{}}\n\n[]\n{}\n").unwrap();
        let error = read(file.path(), &questions()).unwrap_err().to_string();
        assert!(error.starts_with("2 lines of ") && error.ends_with("nothing was asked"), "{error}");
        std::fs::write(file.path(), b"{\"state\":\"x\",\"labels\":{}}\n\xff\n").unwrap();
        let error = read(file.path(), &questions()).unwrap_err().to_string();
        assert!(error.starts_with("1 lines of "), "{error}");
        std::fs::write(file.path(), "\n").unwrap();
        assert!(read(file.path(), &questions()).unwrap_err().to_string().ends_with("has no items"));
    }

    /// Reads a CSV file; returns the labels of its items with their states.
    fn read_csv(text: &[u8]) -> anyhow::Result<Vec<(String, String)>> {
        let file = tempfile::Builder::new().suffix(".CSV").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let items = read(file.path(), &questions())?;
        Ok(items.iter().map(|item| (item.state.text().to_owned(), item.labels.text().to_owned())).collect())
    }

    #[test]
    fn csv_has_a_column_for_the_state_and_for_each_labelled_question() {
        let text = "\u{feff}heat,\"state\",refund\r\n1,\"a \"\"b\"\",\r\nc\",true\r\n\r\n,,false\r\n0,d,\r\n";
        let expected = [
            (r#""a \"b\",\r\nc""#, r#"{"heat":"1","refund":"true"}"#),
            (r#""""#, r#"{"refund":"false"}"#),
            (r#""d""#, r#"{"heat":"0"}"#),
        ];
        assert_eq!(read_csv(text.as_bytes()).unwrap(), expected.map(|(state, labels)| (state.into(), labels.into())));
        assert_eq!(read_csv(b"state\nx").unwrap(), [("\"x\"".to_owned(), "{}".to_owned())]);
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
            ("state,refund\nx,yes\ny\nz,true,1\nv,true\n", "3 lines of "),
        ] {
            let error = format!("{:#}", read_csv(text.as_bytes()).unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
        let error = read_csv(b"state\n\xff\nx\n").unwrap_err().to_string();
        assert!(error.starts_with("1 lines of "), "{error}");
        let questions = questions();
        let columns = Columns::find(&csv::StringRecord::from(vec!["state", "refund"]), &questions).unwrap();
        let line = |row: &[&str]| columns.line(&csv::StringRecord::from(row.to_vec()));
        assert_eq!(line(&["x"]).unwrap_err().to_string(), "has 1 cells, the head has 2");
        let error =
            format!("{:#}", read_item(&line(&["x", "yes"]).unwrap(), &questions, &mut BTreeMap::new()).unwrap_err());
        assert_eq!(error, "labels.refund: \"yes\" is not a label of this question; valid: true, false");
    }
}
