//! Names that travel under another one.

use std::collections::HashMap;

use crate::json::Json;
use crate::question::{Answer, AnswerValue, Answers, ProviderInput, Question, QuestionKind, Questions};

/// Which names of questions and options were replaced before anything was sent. Holds the names that were sent and the
/// places of those that were asked, and no name that was redacted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases {
    /// By the name under which a question was sent.
    questions: HashMap<String, Sent>,
}

/// A question that has an alias, or an option with one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sent {
    /// The question's place.
    place: usize,
    /// The places of its options by the names under which they were sent, as far as those are others.
    options: HashMap<String, usize>,
}

impl Aliases {
    /// True where every name travels as it is.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// What became of the names of questions that are the same but for their words.
    pub(super) fn between(asked: &Questions, sent: &Questions) -> Self {
        let mut questions = HashMap::new();
        if let (Some(asked), Some(sent)) = (&asked.typed, &sent.typed) {
            for (place, (asked, sent)) in asked.iter().zip(sent).enumerate() {
                let pairs = options(asked).iter().zip(options(sent)).enumerate();
                let changed = pairs.filter(|(_, (asked, sent))| asked.name != sent.name);
                let options: HashMap<String, usize> =
                    changed.map(|(place, (_, sent))| (sent.name.clone(), place)).collect();
                if asked.name != sent.name || !options.is_empty() {
                    questions.insert(sent.name.clone(), Sent { place, options });
                }
            }
        } else if let (Some(asked), Some(sent)) = (asked.json.members(), sent.json.members()) {
            for (place, ((asked, _), (sent, _))) in asked.iter().zip(&sent).enumerate() {
                if asked != sent {
                    questions.insert(sent.clone(), Sent { place, options: HashMap::new() });
                }
            }
        }
        Self { questions }
    }

    /// Answers to what was sent, with the names of what was asked: those of the questions, and those of options in
    /// answers to choices. Everything else in them stays as it is.
    #[must_use]
    pub fn restore(&self, answers: Answers, asked: &ProviderInput) -> Answers {
        if self.questions.is_empty() {
            return answers;
        }
        match (answers.typed(), &asked.questions.typed) {
            (Some(typed), Some(asked)) => {
                Answers::of_typed(typed.iter().map(|answer| self.named(answer, asked)).collect())
            }
            (None, None) => self.renamed(answers, asked),
            _ => answers,
        }
    }

    fn named(&self, answer: &Answer, asked: &[Question]) -> Answer {
        let sent = self.questions.get(&answer.name);
        let Some((sent, question)) = sent.and_then(|sent| Some((sent, asked.get(sent.place)?))) else {
            return answer.clone();
        };
        let json = if matches!(answer.value, AnswerValue::Choice { .. }) && !sent.options.is_empty() {
            sent.chosen(&answer.json, question)
        } else {
            answer.json.clone()
        };
        Answer { name: question.name.clone(), json, value: answer.value.clone() }
    }

    /// Opaque answers, which are to opaque questions: their names are those of the members.
    fn renamed(&self, answers: Answers, asked: &ProviderInput) -> Answers {
        let (Some(members), Some(asked)) = (answers.json().members(), asked.questions.json.members()) else {
            return answers;
        };
        let named = members.iter().map(|(name, json)| {
            let original = self.questions.get(name).and_then(|sent| asked.get(sent.place));
            (original.map_or(name.as_str(), |(original, _)| original.as_str()), json.text())
        });
        Answers::of_opaque(Json::object(named))
    }
}

impl Sent {
    /// The answer to a choice with the names of the options that were asked.
    fn chosen(&self, answer: &Json, question: &Question) -> Json {
        let Some(members) = answer.members() else { return answer.clone() };
        let name = |sent: &str| {
            let option = self.options.get(sent).and_then(|place| options(question).get(*place));
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
