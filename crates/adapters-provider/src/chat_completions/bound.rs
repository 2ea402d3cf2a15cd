//! Upper bound of the request bytes of one attempt.

use domain::json::Json;
use domain::question::Question;
use domain::routing::{ChatMethod, ChatSettings};
use wires::chat::members::{Member, Members};
use wires::chat::provider_request::{self, OutputKind, Prompt, RequestedOutput};

use super::labels::capacity;
use super::memory::ModelProperties;
use super::prompt::{self, Document, outcomes};
use super::structured::probabilities_output;
use super::tournament::groups;

/// Bytes that an option adds to the list of labels: a comma, a space, its letter.
const LIST_ENTRY_BYTES: u64 = 3;

/// The inputs of the bound.
pub(super) struct RequestBound<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) chat: ChatSettings,
    pub(super) learned: ModelProperties,
    pub(super) questions: &'a [Question],
}

/// The sizes of the request bodies of one kind, in bytes.
#[derive(Default)]
struct CallSizes {
    total: u64,
    longest: u64,
}

impl RequestBound<'_> {
    /// Returns the bound for questions about this document.
    pub(super) fn total_bytes(&self, document: &Document) -> u64 {
        let document = json_string_bytes(document.text());
        let labels = || self.with_retries(OutputKind::Label, &self.label_calls(document));
        let statement = || self.with_retries(OutputKind::Object, &self.structured_calls(document));
        match (self.chat.method, self.learned.logprobs) {
            (ChatMethod::Structured, _) | (ChatMethod::Auto, Some(false)) => statement(),
            (ChatMethod::Logprobs, _) => labels(),
            // A model that reported log-probabilities may stop doing so.
            (ChatMethod::Auto, Some(true) | None) => labels().saturating_add(statement()),
        }
    }

    fn with_retries(&self, kind: OutputKind, calls: &CallSizes) -> u64 {
        let retries = count(self.learned.retries(kind));
        calls.total.saturating_add(calls.longest.saturating_mul(retries))
    }

    /// Sums all rounds. Assumes that the longest option of each group wins.
    fn label_calls(&self, document: u64) -> CallSizes {
        let capacity = capacity(self.chat.top_logprobs);
        let output = RequestedOutput::Label { top_logprobs: self.chat.top_logprobs };
        let mut calls = CallSizes::default();
        for question in self.questions {
            let around = self.body(&prompt::label_prompt(&Document::empty(), question, &[]), &output) + document;
            let option = |outcome| json_string_bytes(&prompt::option_line('A', question, outcome)) + LIST_ENTRY_BYTES;
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

    fn structured_calls(&self, document: u64) -> CallSizes {
        let prompt = prompt::probabilities_prompt(&Document::empty(), self.questions);
        let mut calls = CallSizes::default();
        calls.add(self.body(&prompt, &probabilities_output(self.questions)) + document);
        calls
    }

    /// Returns the longest body of a kind: without the rejected members, with the longer name of the token limit.
    fn body(&self, prompt: &Prompt, output: &RequestedOutput) -> u64 {
        let omitted: Members = self.learned.omitted(OutputKind::of(output)).with(Member::MaxTokens);
        count(provider_request::body(self.model, prompt, output, omitted).len())
    }
}

impl CallSizes {
    fn add(&mut self, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
        self.longest = self.longest.max(bytes);
    }
}

/// Returns the length of a text within a JSON string, in bytes.
fn json_string_bytes(text: &str) -> u64 {
    count(Json::string(text).text().len()).saturating_sub(2)
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
