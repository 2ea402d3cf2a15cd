//! Questions of a single outcome: the answer is known without asking anybody.

use std::borrow::Cow;
use std::sync::Arc;

use domain::decision::{Inquiry, Question, QuestionKind};
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

/// An inquiry without the questions that are answered here.
#[derive(Debug, Clone)]
pub struct Division {
    /// What is left to ask; `None` is nothing.
    pub asked: Option<Arc<Inquiry>>,
    /// True where something is answered here.
    pub divided: bool,
}

/// Takes the questions of a single outcome out. Opaque questions stay as they are.
pub fn divide(inquiry: &Arc<Inquiry>) -> Division {
    match left_to_ask(inquiry) {
        Some(Cow::Borrowed(_)) => Division { asked: Some(Arc::clone(inquiry)), divided: false },
        Some(Cow::Owned(rest)) => Division { asked: Some(Arc::new(rest)), divided: true },
        None => Division { asked: None, divided: true },
    }
}

/// What of an inquiry is asked by a wire that takes no question of a single outcome; `None` is nothing.
pub(crate) fn left_to_ask(inquiry: &Inquiry) -> Option<Cow<'_, Inquiry>> {
    let typed = inquiry.questions.typed.as_deref().unwrap_or_default();
    if !typed.iter().any(has_single_outcome) {
        return Some(Cow::Borrowed(inquiry));
    }
    let rest: Vec<Question> = typed.iter().filter(|question| !has_single_outcome(question)).cloned().collect();
    (!rest.is_empty()).then(|| Cow::Owned(inquiry.with_questions(rest)))
}

impl Division {
    /// The answers to the whole inquiry in the order of its questions: those from here, and in between those that
    /// the provider gave, as they came. What is asked and was not answered is left out, for the check to find.
    pub fn join(inquiry: &Inquiry, given: Option<&Json>, confidence: ConfidenceSource) -> Json {
        let mut given = given.and_then(Json::members).unwrap_or_default().into_iter();
        let typed = inquiry.questions.typed.as_deref().unwrap_or_default();
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
