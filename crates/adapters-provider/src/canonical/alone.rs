//! Questions of a single outcome: the answer is known without asking anybody.

use std::borrow::Cow;
use std::sync::Arc;

use domain::decision::{ProviderInput, Question, QuestionKind};
use domain::json::Json;
use domain::routing::ConfidenceSource;

use super::answers::{Extras, choice, in_order, score};

/// Whether it is a choice of one option or a score of one level.
pub fn has_single_outcome(question: &Question) -> bool {
    match &question.kind {
        QuestionKind::Choice { options } => options.len() == 1,
        QuestionKind::Score { levels } => levels.len() == 1,
        QuestionKind::Noul { .. } | QuestionKind::Box => false,
    }
}

/// The answer to a question of a single outcome, with probability 1; `None` to any other. Where confidence is
/// computed later anyhow it is left out, so that ours does not pass for a provider's.
pub fn answer_alone(question: &Question, confidence: ConfidenceSource) -> Option<Json> {
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

/// A provider input without the questions that are answered here.
#[derive(Debug, Clone)]
pub struct Division {
    /// What is left to ask; `None` is nothing.
    pub asked: Option<Arc<ProviderInput>>,
    /// True where something is answered here.
    pub divided: bool,
}

/// Takes the questions of a single outcome out. Opaque questions stay as they are.
pub fn divide(provider_input: &Arc<ProviderInput>) -> Division {
    match left_to_ask(provider_input) {
        Some(Cow::Borrowed(_)) => Division { asked: Some(Arc::clone(provider_input)), divided: false },
        Some(Cow::Owned(rest)) => Division { asked: Some(Arc::new(rest)), divided: true },
        None => Division { asked: None, divided: true },
    }
}

/// The questions that a wire is asked which takes none with a single outcome; `None` where no question is left.
pub(crate) fn left_to_ask(provider_input: &ProviderInput) -> Option<Cow<'_, ProviderInput>> {
    let typed = provider_input.questions.typed.as_deref().unwrap_or_default();
    if !typed.iter().any(has_single_outcome) {
        return Some(Cow::Borrowed(provider_input));
    }
    let rest: Vec<Question> = typed.iter().filter(|question| !has_single_outcome(question)).cloned().collect();
    (!rest.is_empty()).then(|| Cow::Owned(provider_input.with_questions(rest)))
}

impl Division {
    /// The answers to the whole provider input in the order of its questions: those from here, and in between those that
    /// the provider gave, as they came. What is asked and was not answered is left out, for the check to find.
    pub fn join(provider_input: &ProviderInput, given: Option<&Json>, confidence: ConfidenceSource) -> Json {
        let mut given = given.and_then(Json::members).unwrap_or_default().into_iter();
        let typed = provider_input.questions.typed.as_deref().unwrap_or_default();
        let mut answers = Vec::with_capacity(typed.len());
        for question in typed {
            match answer_alone(question, confidence) {
                Some(answer) => answers.push((question.name.clone(), answer)),
                None => answers.extend(given.next()),
            }
        }
        answers.extend(given);
        in_order(answers.iter().map(|(name, answer)| (name.as_str(), answer)))
    }
}
