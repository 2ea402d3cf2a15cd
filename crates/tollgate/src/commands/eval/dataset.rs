//! Datasets: labelled items as JSON lines.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use domain::json::{Json, unknown_name};
use domain::question::Question;
use domain::statistics::Decision;
use sha2::{Digest as _, Sha256};

use crate::commands::backup::hex;
use crate::output::note;

/// The most errors that are shown.
const MAX_SHOWN: usize = 10;

/// An item of a dataset.
#[derive(Debug)]
pub struct Item {
    /// The number of its line and the beginning of the line's hash.
    pub id: String,
    /// The state.
    pub state: Json,
    /// The labels as they are written.
    pub labels: Json,
}

/// Reads the items of a dataset.
///
/// # Errors
/// The file cannot be read, or a line is no item; the errors are shown by line.
pub fn read(file: &Path, questions: &[Question]) -> anyhow::Result<Vec<Item>> {
    let name = file.display();
    let lines = BufReader::new(File::open(file).with_context(|| format!("cannot read {name}"))?).lines();
    let (mut items, mut errors) = (Vec::new(), 0_usize);
    for (number, line) in (1_usize..).zip(lines) {
        let line = line.with_context(|| format!("cannot read line {number} of {name}"))?;
        if line.trim().is_empty() {
            continue;
        }
        match read_item(number, &line, questions) {
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

fn read_item(number: usize, line: &str, questions: &[Question]) -> anyhow::Result<Item> {
    let item = Json::parse(line.strip_prefix('\u{feff}').unwrap_or(line))?;
    let (mut state, mut labels) = (None, None);
    for (name, value) in item.members().context("must be a JSON object with state and labels")? {
        match name.as_str() {
            "state" => state = Some(value),
            "labels" => labels = Some(value),
            _ => bail!(unknown_name("member", &name, ["state", "labels"])),
        }
    }
    let labels = labels.context("labels: must be an object that maps questions to labels")?;
    read_labels(&labels, questions)?;
    let hash = hex(Sha256::new_with_prefix(line));
    Ok(Item { id: format!("{number}-{}", &hash[..16]), state: state.context("state: must be present")?, labels })
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
        PresetConfig::read(&Json::parse(config).unwrap()).unwrap().questions.typed.unwrap()
    }

    #[test]
    fn item_has_state_and_labels() {
        let item = read_item(7, r#"{"labels":{"heat":1,"refund":null},"state":{"a":[1.50]}}"#, &questions()).unwrap();
        assert_eq!(item.state.text(), r#"{"a":[1.50]}"#);
        assert_eq!(read_labels(&item.labels, &questions()).unwrap(), [None, Some(Decision::Score(1))]);
        assert!(item.id.starts_with("7-") && item.id.len() == 18, "{}", item.id);
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
            let error = format!("{:#}", read_item(1, line, &questions()).unwrap_err());
            assert!(error.contains(reason), "{line}: {error}");
        }
    }

    #[test]
    fn invalid_lines_are_counted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "\u{feff}{\"state\":\"x\",\"labels\":{}}\n\n[]\n{}\n").unwrap();
        let error = read(file.path(), &questions()).unwrap_err().to_string();
        assert!(error.starts_with("2 lines of ") && error.ends_with("nothing was asked"), "{error}");
        std::fs::write(file.path(), "\n").unwrap();
        assert!(read(file.path(), &questions()).unwrap_err().to_string().ends_with("has no items"));
    }
}
