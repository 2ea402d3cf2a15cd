//! Answers in canonical form, from numbers as the provider wrote them, and those to questions with a single possible
//! outcome, which are answered without calling a provider.

use std::borrow::Cow;
use std::sync::Arc;

use domain::json::Json;
use domain::question::{ChoiceOption, ConfidenceSource, ProviderInput, Question, QuestionKind};

/// Optional members of an answer, as JSON texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// The provider's own confidence.
    pub confidence: Option<&'a str>,
    /// The object that describes how the answer was produced.
    pub metadata: Option<&'a str>,
}

/// Builds the answer to a yes-or-no question from the probability of yes.
pub fn noul(probability: &str, extras: Extras<'_>) -> Json {
    written("noul", &[("noul", probability)], extras)
}

/// Builds the answer to a choice from the name of the chosen option and the probability of each option, in order.
pub fn choice(options: &[ChoiceOption], chosen: &str, probabilities: &[&str], extras: Extras<'_>) -> Json {
    let chosen = Json::string(chosen);
    let names = options.iter().map(|option| option.name.as_str());
    let probabilities = Json::object(names.zip(probabilities.iter().copied()));
    written("choice", &[("choice", chosen.text()), ("probabilities", probabilities.text())], extras)
}

/// Builds the answer to a score from its value and the probability of each level. The legend repeats the levels.
pub fn score(levels: &[Json], score: &str, probabilities: &[&str], extras: Extras<'_>) -> Json {
    let numbers: Vec<String> = (0..levels.len()).map(|level| level.to_string()).collect();
    let numbers = || numbers.iter().map(String::as_str);
    let probabilities = Json::object(numbers().zip(probabilities.iter().copied()));
    let legend = legend(levels);
    written("score", &[("score", score), ("legend", legend.text()), ("probabilities", probabilities.text())], extras)
}

/// Maps the number of each level to its description.
pub fn legend(levels: &[Json]) -> Json {
    let numbers: Vec<String> = (0..levels.len()).map(|level| level.to_string()).collect();
    Json::object(numbers.iter().map(String::as_str).zip(levels.iter().map(Json::text)))
}

/// Builds the answer of a model that refuses the question.
pub fn refusal() -> Json {
    written("refusal", &[], Extras::default())
}

/// Builds the object of answers by question name, in the given order.
pub fn in_order<'a>(answers: impl IntoIterator<Item = (&'a str, &'a Json)>) -> Json {
    Json::object(answers.into_iter().map(|(name, answer)| (name, answer.text())))
}

fn written(type_name: &str, values: &[(&str, &str)], extras: Extras<'_>) -> Json {
    let type_name = Json::string(type_name);
    let confidence = extras.confidence.map(|confidence| ("confidence", confidence));
    let metadata = extras.metadata.map(|metadata| ("metadata", metadata));
    let first = [("type", type_name.text())];
    Json::object(first.iter().chain(values).copied().chain(confidence).chain(metadata))
}

/// Returns true for a choice of one option and a score of one level.
pub fn has_single_outcome(question: &Question) -> bool {
    match &question.kind {
        QuestionKind::Choice { options } => options.len() == 1,
        QuestionKind::Score { levels } => levels.len() == 1,
        QuestionKind::Noul { .. } | QuestionKind::Box => false,
    }
}

/// Returns the answer to a question with a single outcome, with probability 1, or `None` for other questions. Omits the
/// confidence if it is computed later, so that a computed value is not taken for the provider's.
pub fn answer_single_outcome(question: &Question, confidence: ConfidenceSource) -> Option<Json> {
    let confidence = (confidence != ConfidenceSource::Computed).then_some("1");
    let extras = Extras { confidence, ..Extras::default() };
    match &question.kind {
        QuestionKind::Choice { options } => {
            let [only] = options.as_slice() else { return None };
            Some(choice(options, &only.name, &["1"], extras))
        }
        QuestionKind::Score { levels } if levels.len() == 1 => Some(score(levels, "0", &["1"], extras)),
        _ => None,
    }
}

/// A provider input split into locally answered questions and the questions for the provider.
#[derive(Debug, Clone)]
pub struct Division {
    /// The questions for the provider; `None` if all are answered locally.
    pub remaining: Option<Arc<ProviderInput>>,
    /// True if at least one question is answered locally.
    pub has_local_answers: bool,
}

/// Removes the questions with a single outcome. Opaque questions stay unchanged.
pub fn divide(provider_input: &Arc<ProviderInput>) -> Division {
    match remaining_input(provider_input) {
        Some(Cow::Borrowed(_)) => Division { remaining: Some(Arc::clone(provider_input)), has_local_answers: false },
        Some(Cow::Owned(rest)) => Division { remaining: Some(Arc::new(rest)), has_local_answers: true },
        None => Division { remaining: None, has_local_answers: true },
    }
}

/// Returns the questions for a wire that rejects single outcomes; `None` if no question is left.
pub fn remaining_input(provider_input: &ProviderInput) -> Option<Cow<'_, ProviderInput>> {
    let typed = provider_input.questions.typed.as_deref().unwrap_or_default();
    if !typed.iter().any(has_single_outcome) {
        return Some(Cow::Borrowed(provider_input));
    }
    let rest: Vec<Question> = typed.iter().filter(|question| !has_single_outcome(question)).cloned().collect();
    (!rest.is_empty()).then(|| Cow::Owned(provider_input.with_questions(rest)))
}

impl Division {
    /// Merges the local answers and the provider's answers in the order of the questions. Omits missing answers, so
    /// that the validation reports them.
    pub fn join(provider_input: &ProviderInput, given: Option<&Json>, confidence: ConfidenceSource) -> Json {
        let mut given = given.and_then(Json::members).unwrap_or_default().into_iter();
        let typed = provider_input.questions.typed.as_deref().unwrap_or_default();
        let mut answers = Vec::with_capacity(typed.len());
        for question in typed {
            match answer_single_outcome(question, confidence) {
                Some(answer) => answers.push((question.name.clone(), answer)),
                None => answers.extend(given.next()),
            }
        }
        answers.extend(given);
        in_order(answers.iter().map(|(name, answer)| (name.as_str(), answer)))
    }
}
