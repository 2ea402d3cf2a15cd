//! Upper bound of the request bytes of one attempt.

use domain::decision::Question;
use domain::json::Json;
use domain::routing::{ChatMethod, ChatSettings};

use super::labels::capacity;
use super::members::{Member, Members};
use super::memory::Learned;
use super::prompt::{self, Document, Prompt, outcomes};
use super::request::{self, Kind, Wanted};
use super::tournament::groups;

/// Bytes that an option adds to the list of labels: a comma, a space, its letter.
const LISTED: u64 = 3;

/// The inputs of the bound.
pub(super) struct Bound<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) chat: ChatSettings,
    pub(super) learned: Learned,
    pub(super) questions: &'a [Question],
}

/// The sizes of the request bodies of one kind, in bytes.
#[derive(Default)]
struct Calls {
    together: u64,
    longest: u64,
}

impl Bound<'_> {
    /// Returns the bound for questions about this document.
    pub(super) fn of(&self, document: &Document) -> u64 {
        let document = written(document.text());
        let labels = || self.with_retries(Kind::Label, &self.by_labels(document));
        let statement = || self.with_retries(Kind::Object, &self.by_statement(document));
        match (self.chat.method, self.learned.logprobs) {
            (ChatMethod::Structured, _) | (ChatMethod::Auto, Some(false)) => statement(),
            (ChatMethod::Logprobs, _) => labels(),
            // A model that reported log-probabilities may stop doing so.
            (ChatMethod::Auto, Some(true) | None) => labels().saturating_add(statement()),
        }
    }

    fn with_retries(&self, kind: Kind, calls: &Calls) -> u64 {
        let retries = count(self.learned.retries(kind));
        calls.together.saturating_add(calls.longest.saturating_mul(retries))
    }

    /// Sums all rounds. Assumes that the longest option of each group wins.
    fn by_labels(&self, document: u64) -> Calls {
        let capacity = capacity(self.chat.top_logprobs);
        let wanted = Wanted::Label { top_logprobs: self.chat.top_logprobs };
        let mut calls = Calls::default();
        for question in self.questions {
            let around = self.body(&prompt::one_label(&Document::absent(), question, &[]), &wanted) + document;
            let option = |outcome| written(&prompt::labelled('A', question, outcome)) + LISTED;
            let mut options: Vec<u64> = (0..outcomes(&question.kind)).map(option).collect();
            while options.len() > 1 {
                for contest in groups(&options, capacity).filter(|contest| contest.len() > 1) {
                    calls.add(around.saturating_add(contest.iter().sum()));
                }
                options = groups(&options, capacity).filter_map(|group| group.iter().copied().max()).collect();
            }
        }
        calls
    }

    fn by_statement(&self, document: u64) -> Calls {
        let prompt = prompt::stated(&Document::absent(), self.questions);
        let mut calls = Calls::default();
        calls.add(self.body(&prompt, &request::stated(self.questions)) + document);
        calls
    }

    /// Returns the longest body of a kind: without the rejected members, with the longer name of the token limit.
    fn body(&self, prompt: &Prompt, wanted: &Wanted) -> u64 {
        let left_out: Members = self.learned.left_out(Kind::of(wanted)).with(Member::MaxTokens);
        count(request::body(self.model, prompt, wanted, left_out).len())
    }
}

impl Calls {
    fn add(&mut self, bytes: u64) {
        self.together = self.together.saturating_add(bytes);
        self.longest = self.longest.max(bytes);
    }
}

/// Returns the length of a text within a JSON string, in bytes.
fn written(text: &str) -> u64 {
    count(Json::string(text).text().len()).saturating_sub(2)
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
