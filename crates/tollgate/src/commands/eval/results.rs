//! The result file: a line with the preset, then a line for each answered request. A line is written once, so that a
//! command that was killed continues with the requests that have none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use domain::evaluation::{AnswerOrigin, EvaluatedAnswer, Group, RequestSize, decide};
use domain::evidence::LabelSource;
use domain::json::Json;
use domain::money::Usd;
use domain::preset::PresetConfig;
use domain::question::{AnswerRules, Answers, ConfidenceSource, Question, Questions};
use domain::routing::Wire;
use domain::statistics::{EscalatedQuestions, largest_probability};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::dataset::read_labels;
use crate::output::pointer;

/// The items whose scores give the candidates of thresholds.
const CANDIDATE_ITEMS: usize = 100;

/// The rules for reading recorded answers. The server checked them, so the distribution may be rounded coarsely.
const RULES: AnswerRules = AnswerRules { decimals: 1, confidence: ConfidenceSource::Native };

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// The preset.
    pub preset: String,
    /// Its version.
    pub version: u32,
    /// The models and questions of the version.
    config: Box<RawValue>,
}

/// The line of an answered request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultRow {
    /// The item.
    pub item: String,
    /// The labels of the item.
    pub labels: Box<RawValue>,
    /// The bytes of the state.
    pub state_bytes: u64,
    /// The model that was asked.
    pub asked: String,
    /// The id of the response.
    pub id: String,
    /// The resolved model.
    pub model: String,
    /// The provider.
    pub provider: String,
    /// The wire of the provider.
    pub wire: String,
    /// The questions that the provider receives of a request of which others are accepted: `open` or `all`.
    pub escalated_questions: String,
    /// The answers.
    pub answers: Box<RawValue>,
    /// The cost in USD.
    pub cost: Box<RawValue>,
    /// The latency in milliseconds.
    pub latency_ms: u64,
}

/// The line of a failed request. The same command repeats the request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FailureRow {
    /// The item.
    pub item: String,
    /// The model that was asked.
    pub asked: String,
    /// The error.
    pub error: String,
}

/// A result file.
pub struct Results {
    file: File,
    path: PathBuf,
    /// The first line.
    pub header: Header,
    /// The questions of the preset.
    pub questions: Questions,
    /// The answered requests.
    pub rows: Vec<ResultRow>,
    /// The failed requests, those that were answered later included.
    failures: Vec<FailureRow>,
}

impl Header {
    /// Creates the first line of a preset as the server returns it.
    ///
    /// # Errors
    /// The preset has no designated version.
    pub fn of_preset(slug: &str, preset: &Json) -> anyhow::Result<Self> {
        let member = |at: &str| pointer(preset, &format!("/data/designated_version/{at}"));
        let version = member("version").and_then(|version| version.text().parse().ok());
        let config = member("config").and_then(|config| RawValue::from_string(config.text().to_owned()).ok());
        let version = version.context("the preset has no designated version")?;
        Ok(Self { preset: slug.to_owned(), version, config: config.context("the preset has no questions")? })
    }

    /// Reads the questions.
    ///
    /// # Errors
    /// They are invalid.
    pub fn questions(&self) -> anyhow::Result<Questions> {
        Ok(PresetConfig::read(&Json::from(self.config.clone())).context("the questions cannot be read")?.questions)
    }
}

impl Results {
    /// Opens a result file, or creates it. A line that was not written as a whole is removed.
    ///
    /// # Errors
    /// The file cannot be used, is in use, or is of another preset or version.
    pub fn open(path: &Path, header: &Header) -> anyhow::Result<Self> {
        let name = path.display();
        let options = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path);
        let mut file = options.with_context(|| format!("cannot open {name}"))?;
        file.try_lock().with_context(|| format!("{name} is in use by another command"))?;
        let text = read_text(&mut file).with_context(|| format!("cannot read {name}"))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole == 0 {
            ensure!(is_beginning(&text, header), "{name} exists and is not a result file");
            file.set_len(0)?;
            let mut results = Self {
                file,
                path: path.to_owned(),
                header: header.clone(),
                questions: header.questions()?,
                rows: vec![],
                failures: vec![],
            };
            results.write(header)?;
            return Ok(results);
        }
        let results = Self::of_text(file, path, &text[..whole])?;
        let Header { preset, version, .. } = &results.header;
        ensure!(
            (preset, version) == (&header.preset, &header.version),
            "{name} has answers to version {version} of the preset {preset:?}, not to version {} of {:?}; another \
             --results begins anew",
            header.version,
            header.preset
        );
        results.file.set_len(whole as u64).with_context(|| format!("cannot repair {name}"))?;
        Ok(results)
    }

    /// Reads a result file. A line that was not written as a whole is ignored.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let mut file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        let text = read_text(&mut file).with_context(|| format!("cannot read {name}"))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        Self::of_text(file, path, &text[..whole])
    }

    fn of_text(file: File, path: &Path, text: &str) -> anyhow::Result<Self> {
        let name = path.display();
        let mut lines = text.lines();
        let header = lines.next().and_then(|line| serde_json::from_str::<Header>(line).ok());
        let header = header.with_context(|| format!("{name} is not a result file"))?;
        let questions = header.questions().with_context(|| format!("{name} cannot be used"))?;
        let (mut rows, mut failures) = (Vec::new(), Vec::new());
        for (number, line) in (2_usize..).zip(lines) {
            match serde_json::from_str::<FailureRow>(line) {
                Ok(failure) => failures.push(failure),
                Err(_) => rows.push(serde_json::from_str(line).with_context(|| format!("{name}, line {number}"))?),
            }
        }
        Ok(Self { file, path: path.to_owned(), header, questions, rows, failures })
    }

    /// Returns the requests, by item and asked model, that have an answer.
    ///
    /// # Errors
    /// An item is none of these: the dataset has changed.
    pub fn answered<'a>(&self, items: impl Iterator<Item = &'a str>) -> anyhow::Result<BTreeSet<(String, String)>> {
        let items: BTreeSet<&str> = items.collect();
        if let Some(row) = self.rows.iter().find(|row| !items.contains(row.item.as_str())) {
            let (line, _) = row.item.split_once('-').unwrap_or_default();
            bail!(
                "{} has an answer to an earlier line {line} of the dataset; another --results begins anew",
                self.path.display()
            );
        }
        Ok(self.rows.iter().map(|row| (row.item.clone(), row.asked.clone())).collect())
    }

    /// Adds an answered request.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, row: ResultRow) -> anyhow::Result<()> {
        self.write(&row)?;
        self.rows.push(row);
        Ok(())
    }

    /// Adds a failed request.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_failure(&mut self, failure: FailureRow) -> anyhow::Result<()> {
        self.write(&failure)?;
        self.failures.push(failure);
        Ok(())
    }

    /// Returns the failed requests without a later answer, by the model that was asked.
    pub fn failed_requests(&self) -> BTreeMap<String, usize> {
        let answered: BTreeSet<_> = self.rows.iter().map(|row| (&row.item, &row.asked)).collect();
        let failed: BTreeSet<_> = self.failures.iter().map(|failure| (&failure.item, &failure.asked)).collect();
        let mut by_model = BTreeMap::new();
        for (_, asked) in failed.difference(&answered) {
            *by_model.entry((*asked).clone()).or_default() += 1;
        }
        by_model
    }

    fn write(&mut self, line: &impl Serialize) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(line)?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Returns the answers with their labels.
    ///
    /// # Errors
    /// An answer or a label is none of its question, or a wire is unknown.
    pub fn answers(&self) -> anyhow::Result<Vec<EvaluatedAnswer>> {
        let for_candidates = self.candidate_items();
        let questions = self.questions.typed.as_deref().unwrap_or_default();
        let mut found = Vec::new();
        for row in &self.rows {
            let read = self.read_row(row, questions, for_candidates.contains(row.item.as_str()));
            found.extend(read.with_context(|| format!("{}, the answer {}", self.path.display(), row.id))?);
        }
        Ok(found)
    }

    /// Returns 100 random items, at most half of them: those with the lowest hashes.
    fn candidate_items(&self) -> BTreeSet<&str> {
        let by_hash = self.rows.iter().map(|row| (row.item.split_once('-').unwrap_or_default().1, row.item.as_str()));
        let items: BTreeSet<(&str, &str)> = by_hash.collect();
        let count = CANDIDATE_ITEMS.min(items.len() / 2);
        items.into_iter().take(count).map(|(_, item)| item).collect()
    }

    fn read_row(
        &self,
        row: &ResultRow,
        questions: &[Question],
        is_for_candidates: bool,
    ) -> anyhow::Result<Vec<EvaluatedAnswer>> {
        let answers = Answers::check(&self.questions, &Json::from(row.answers.clone()), RULES);
        let answers = answers.map_err(anyhow::Error::msg)?;
        let labels = read_labels(&Json::from(row.labels.clone()), questions)?;
        let cost: Usd = row.cost.get().parse().context("the cost is no amount")?;
        let escalated_questions = EscalatedQuestions::from_name(&row.escalated_questions);
        let escalated_questions = escalated_questions.context("escalated_questions must be open or all")?;
        let wire = Wire::from_name(&row.wire).with_context(|| format!("the wire {:?} is unknown", row.wire))?;
        let parts = questions.iter().zip(answers.typed().unwrap_or_default()).zip(labels);
        let evaluated = parts.map(|((question, answer), label)| EvaluatedAnswer {
            item: row.item.clone(),
            group: Group {
                preset_version: self.header.version,
                question: question.name.clone(),
                origin: AnswerOrigin {
                    model: row.model.clone(),
                    provider: row.provider.clone(),
                    wire: row.wire.clone(),
                    method: wire.method_of(&answer.json).as_str().to_owned(),
                },
            },
            decision: decide(&answer.value),
            score: largest_probability(&answer.value),
            label: label.map(|label| (label, LabelSource::Reference)),
            is_for_candidates,
            cost,
            latency_ms: row.latency_ms,
            escalated_questions,
            size: Some(RequestSize { state: row.state_bytes, question: question.json.text().len() as u64 }),
        });
        Ok(evaluated.collect())
    }
}

fn read_text(file: &mut File) -> std::io::Result<String> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Returns true if the text is the beginning of the first line.
fn is_beginning(text: &str, header: &Header) -> bool {
    serde_json::to_string(header).is_ok_and(|line| line.starts_with(text))
}

#[cfg(test)]
mod tests {
    use domain::evaluation::MissingDecision;
    use domain::statistics::{Decision, Probability};

    use super::*;

    fn header(version: u32) -> Header {
        let config = r#"{"models":["a/b"],"questions":{"refund":{"type":"noul","instructions":"?"}}}"#;
        let preset = format!(r#"{{"data":{{"designated_version":{{"version":{version},"config":{config}}}}}}}"#);
        Header::of_preset("triage", &Json::parse(&preset).unwrap()).unwrap()
    }

    fn row(item: &str, answers: &str) -> ResultRow {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        ResultRow {
            item: item.to_owned(),
            labels: raw(r#"{"refund":true}"#),
            state_bytes: 5,
            asked: "a/b".to_owned(),
            id: "gen-dec-1".to_owned(),
            model: "a/b".to_owned(),
            provider: "Alpha".to_owned(),
            wire: "chat-completions".to_owned(),
            escalated_questions: "all".to_owned(),
            answers: raw(answers),
            cost: raw("0.000000000001"),
            latency_ms: 7,
        }
    }

    const ANSWER: &str = r#"{"refund":{"type":"noul","noul":0.2,"metadata":{"method":"logprobs"}}}"#;

    #[test]
    fn result_file_keeps_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let mut results = Results::open(&path, &header(1)).unwrap();
        results.add(row("1-aa", ANSWER)).unwrap();
        let busy = Results::open(&path, &header(1)).err().unwrap();
        assert!(busy.to_string().contains("in use"), "{busy}");
        drop(results);
        let whole = std::fs::read_to_string(&path).unwrap();
        for rest in ["", "{\"item\":\"2-b"] {
            std::fs::write(&path, format!("{whole}{rest}")).unwrap();
            assert_eq!(Results::read(&path).unwrap().rows.len(), 1);
            let results = Results::open(&path, &header(1)).unwrap();
            assert_eq!((results.rows.len(), std::fs::read_to_string(&path).unwrap()), (1, whole.clone()));
        }
        let other = Results::open(&path, &header(2)).err().unwrap();
        assert!(other.to_string().contains("version 1 of the preset"), "{other}");
        // A file that was cut in its first line begins anew; another file is not touched.
        std::fs::write(&path, &whole[..20]).unwrap();
        assert!(Results::open(&path, &header(1)).unwrap().rows.is_empty());
        for text in ["a letter", "a letter\nwith a rest"] {
            std::fs::write(&path, text).unwrap();
            assert!(Results::open(&path, &header(1)).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn answers_are_read_with_their_labels() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let mut results = Results::open(&path, &header(1)).unwrap();
        for item in 1..=3 {
            results.add(row(&format!("{item}-{item}"), ANSWER)).unwrap();
        }
        let answers = results.answers().unwrap();
        let [first, _, last] = &answers[..] else { panic!("{} answers", answers.len()) };
        assert_eq!((first.is_for_candidates, last.is_for_candidates), (true, false));
        assert_eq!(
            (last.decision, last.label),
            (Ok(Decision::Noul(false)), Some((Decision::Noul(true), LabelSource::Reference)))
        );
        assert_eq!(last.score.map(Probability::get), Some(0.8));
        assert_eq!((last.group.origin.method.as_str(), last.cost), ("label_probabilities", Usd::from_pico(1)));
        assert!(
            results
                .answered(["1-1", "2-2", "3-3"].into_iter())
                .unwrap()
                .contains(&("2-2".to_owned(), "a/b".to_owned()))
        );
        let changed = results.answered(["1-1", "2-x", "3-3"].into_iter()).unwrap_err().to_string();
        assert!(changed.contains("earlier line 2 of the dataset"), "{changed}");
        results.add(row("4-4", r#"{"refund":{"type":"noul","noul":2}}"#)).unwrap();
        assert!(format!("{:#}", results.answers().unwrap_err()).contains("gen-dec-1"));
    }

    #[test]
    fn refusals_and_failed_requests_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let mut results = Results::open(&path, &header(1)).unwrap();
        let failure = |item: &str, asked: &str| FailureRow {
            item: item.to_owned(),
            asked: asked.to_owned(),
            error: "500: no".to_owned(),
        };
        for (item, asked) in [("1-1", "a/b"), ("2-2", "a/b"), ("1-1", "a/b"), ("1-1", "c/d")] {
            results.add_failure(failure(item, asked)).unwrap();
        }
        results.add(row("1-1", r#"{"refund":{"type":"refusal","refusal":"no"}}"#)).unwrap();
        drop(results);
        let results = Results::open(&path, &header(1)).unwrap();
        assert_eq!(results.failed_requests(), [("a/b".to_owned(), 1), ("c/d".to_owned(), 1)].into());
        let [refusal] = &results.answers().unwrap()[..] else { panic!("one answer") };
        assert_eq!((refusal.decision, refusal.score), (Err(MissingDecision::Refusal), None));
        assert_eq!(results.answered(["1-1"].into_iter()).unwrap().len(), 1, "failed requests are repeated");
    }

    #[test]
    fn method_follows_the_wire() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(&folder.path().join("results"), &header(1)).unwrap();
        let of_wire = |wire: &str, answer: &str| ResultRow { wire: wire.to_owned(), ..row("1-1", answer) };
        let plain = r#"{"refund":{"type":"noul","noul":0.2}}"#;
        let structured = r#"{"refund":{"type":"noul","noul":0.2,"metadata":{"method":"structured"}}}"#;
        for (wire, answer) in [("chat-completions", plain), ("system-one", structured)] {
            results.add(of_wire(wire, answer)).unwrap();
        }
        let methods: Vec<String> =
            results.answers().unwrap().into_iter().map(|answer| answer.group.origin.method).collect();
        assert_eq!(methods, ["stated", "native"]);
        results.add(of_wire("", plain)).unwrap();
        assert!(format!("{:#}", results.answers().unwrap_err()).contains("the wire \"\" is unknown"));
    }
}
