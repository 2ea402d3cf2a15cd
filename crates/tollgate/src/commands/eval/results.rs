//! The result file: a line with the preset, then a line for each answered request, so that a command that was killed
//! continues with the requests that have none. Of two lines of a request the later one counts: it has corrected labels.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use domain::evaluation::{AnswerOrigin, EvaluatedAnswer, Group, RequestSize, decide};
use domain::evidence::LabelSource;
use domain::preset::PresetConfig;
use domain::question::{AnswerRules, Answers, ConfidenceSource, Question, Questions};
use domain::routing::Wire;
use domain::statistics::{EscalatedQuestions, largest_probability};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::dataset::{Item, read_labels};
use crate::commands::prelude::*;

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
    /// The id of the item, which is that of its state.
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
        let Header { preset, version, config } = &results.header;
        ensure!(
            (preset, version) == (&header.preset, &header.version),
            "{name} has answers to version {version} of the preset {preset:?}, not to version {} of {:?}; another \
             --results begins anew",
            header.version,
            header.preset
        );
        ensure!(
            config.get() == header.config.get(),
            "{name} has answers to other questions of version {version} of a preset {preset:?}: it is of another server or \
             workspace; another --results begins anew"
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
        let (mut rows, mut failures, mut places) = (Vec::<ResultRow>::new(), Vec::new(), BTreeMap::new());
        for (number, line) in (2_usize..).zip(lines) {
            if let Ok(failure) = serde_json::from_str::<FailureRow>(line) {
                failures.push(failure);
                continue;
            }
            let read: Result<ResultRow, _> = serde_json::from_str(line);
            let row = read.with_context(|| format!("{name}, line {number}"))?;
            let place = *places.entry((row.item.clone(), row.asked.clone())).or_insert(rows.len());
            match rows.get_mut(place) {
                Some(earlier) => *earlier = row,
                None => rows.push(row),
            }
        }
        Ok(Self { file, path: path.to_owned(), header, questions, rows, failures })
    }

    /// Takes the labels of these items, and returns the requests, by item and asked model, that have an answer.
    ///
    /// # Errors
    /// An answer is to none of these items, or the file cannot be written.
    pub fn take_labels(&mut self, items: &[Item]) -> anyhow::Result<BTreeSet<(String, String)>> {
        let labels: BTreeMap<&str, &Json> = items.iter().map(|item| (item.id.as_str(), &item.labels)).collect();
        for place in 0..self.rows.len() {
            let Some(row) = self.rows.get(place) else { break };
            let Some(labels) = labels.get(row.item.as_str()) else {
                let name = self.path.display();
                bail!(
                    "{name} has the answer {} to a state that the dataset lacks; another --results begins anew",
                    row.id
                );
            };
            if row.labels.get() != labels.text() {
                let labels = RawValue::from_string(labels.text().to_owned())?;
                let corrected = ResultRow { labels, ..row.clone() };
                self.write(&corrected)?;
                self.rows.splice(place..=place, [corrected]);
            }
        }
        Ok(self.rows.iter().map(|row| (row.item.clone(), row.asked.clone())).collect())
    }

    /// Checks that the answers of a row are those of the questions.
    ///
    /// # Errors
    /// The first invalid answer.
    pub fn check(&self, row: &ResultRow) -> anyhow::Result<()> {
        self.read_row(row, self.questions.typed.as_deref().unwrap_or_default(), false).map(drop)
    }

    /// Adds an answered request.
    ///
    /// # Errors
    /// The file cannot be written. It has whole lines only.
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
        let length = self.file.metadata()?.len();
        let written = self.file.write_all(line.as_bytes());
        if written.is_err() {
            // The first error counts. The rest of a line would spoil the next one.
            let _ = self.file.set_len(length);
        }
        written.with_context(|| format!("cannot write {}", self.path.display()))
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
        let items: BTreeSet<&str> = self.rows.iter().map(|row| row.item.as_str()).collect();
        let count = CANDIDATE_ITEMS.min(items.len() / 2);
        items.into_iter().take(count).collect()
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
mod tests;
