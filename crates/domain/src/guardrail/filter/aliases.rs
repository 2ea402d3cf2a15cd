//! Aliases: names of questions and options that were replaced before sending.

use std::collections::HashMap;

use crate::json::Json;
use crate::question::{Answer, AnswerValue, Answers, ProviderInput, Question, QuestionKind, Questions};

/// The names of questions and options that were replaced before sending. It holds the sent names and the indexes of the
/// original questions and options, but no redacted name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases {
    /// The questions by the name under which they were sent.
    questions: HashMap<String, SentQuestion>,
}

/// A question with an alias, or with an option that has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SentQuestion {
    /// The index of the question.
    index: usize,
    /// The indexes of its options by their sent names, for the options whose names were replaced.
    options: HashMap<String, usize>,
}

impl Aliases {
    /// Returns true if no name was replaced.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Compares original questions with their redacted form and collects the replaced names.
    pub(super) fn from_questions(asked: &Questions, sent: &Questions) -> Self {
        let mut questions = HashMap::new();
        if let (Some(asked), Some(sent)) = (asked.typed.as_deref(), sent.typed.as_deref()) {
            for (index, (asked, sent)) in asked.iter().zip(sent).enumerate() {
                let pairs = options(asked).iter().zip(options(sent)).enumerate();
                let changed = pairs.filter(|(_, (asked, sent))| asked.name != sent.name);
                let options: HashMap<String, usize> =
                    changed.map(|(index, (_, sent))| (sent.name.clone(), index)).collect();
                if asked.name != sent.name || !options.is_empty() {
                    questions.insert(sent.name.clone(), SentQuestion { index, options });
                }
            }
        } else if let (Some(asked), Some(sent)) = (asked.json.members(), sent.json.members()) {
            for (index, ((asked, _), (sent, _))) in asked.iter().zip(&sent).enumerate() {
                if asked != sent {
                    questions.insert(sent.clone(), SentQuestion { index, options: HashMap::new() });
                }
            }
        }
        Self { questions }
    }

    /// Restores the original names of questions, and of options in answers to choices. The rest of the answers is
    /// unchanged.
    #[must_use]
    pub fn restore(&self, answers: Answers, asked: &ProviderInput) -> Answers {
        if self.questions.is_empty() {
            return answers;
        }
        match (answers.typed(), &asked.questions.typed) {
            (Some(typed), Some(asked)) => {
                Answers::from_typed(typed.iter().map(|answer| self.restore_answer(answer, asked)).collect())
            }
            (None, None) => self.restore_opaque(answers, asked),
            _ => answers,
        }
    }

    fn restore_answer(&self, answer: &Answer, asked: &[Question]) -> Answer {
        let sent = self.questions.get(&answer.name);
        let Some((sent, question)) = sent.and_then(|sent| Some((sent, asked.get(sent.index)?))) else {
            return answer.clone();
        };
        let json = if matches!(answer.value, AnswerValue::Choice { .. }) && !sent.options.is_empty() {
            sent.restore_options(&answer.json, question)
        } else {
            answer.json.clone()
        };
        Answer { name: question.name.clone(), json, value: answer.value.clone() }
    }

    /// Restores the member names of opaque answers, which belong to opaque questions.
    fn restore_opaque(&self, answers: Answers, asked: &ProviderInput) -> Answers {
        let (Some(members), Some(asked)) = (answers.json().members(), asked.questions.json.members()) else {
            return answers;
        };
        let named = members.iter().map(|(name, json)| {
            let original = self.questions.get(name).and_then(|sent| asked.get(sent.index));
            (original.map_or(name.as_str(), |(original, _)| original.as_str()), json.text())
        });
        Answers::from_opaque(Json::object(named))
    }
}

impl SentQuestion {
    /// Returns the answer to a choice with the original names of the options.
    fn restore_options(&self, answer: &Json, question: &Question) -> Json {
        let Some(members) = answer.members() else { return answer.clone() };
        let name = |sent: &str| {
            let option = self.options.get(sent).and_then(|index| options(question).get(*index));
            option.map_or_else(|| sent.to_owned(), |option| option.name.clone())
        };
        let written: Vec<(String, Json)> = members
            .into_iter()
            .map(|(member, json)| {
                let json = match member.as_str() {
                    "choice" => json.as_string().map_or(json, |sent| Json::string(&name(&sent))),
                    "probabilities" => json.members().map_or(json, |all| {
                        let named: Vec<(String, Json)> =
                            all.into_iter().map(|(sent, json)| (name(&sent), json)).collect();
                        Json::object(named.iter().map(|(name, json)| (name.as_str(), json.text())))
                    }),
                    _ => json,
                };
                (member, json)
            })
            .collect();
        Json::object(written.iter().map(|(member, json)| (member.as_str(), json.text())))
    }
}

fn options(question: &Question) -> &[crate::question::ChoiceOption] {
    match &question.kind {
        QuestionKind::Choice { options } => options,
        _ => &[],
    }
}
