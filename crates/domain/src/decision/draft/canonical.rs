//! Questions of other wires in canonical form.

use super::path::Path;
use super::present;
use super::questions::question;
use crate::decision::InvalidDecision;
use crate::json::Json;
use crate::question::{Question, QuestionKind};

impl Question {
    /// Converts a question of another wire to canonical form. The rules of the canonical form apply: the numbers of
    /// options and levels, and unique names.
    ///
    /// # Errors
    /// The first violation, with its path below `path`.
    pub fn canonical(
        name: &str,
        instructions: Option<Json>,
        kind: QuestionKind,
        path: &str,
    ) -> Result<Self, InvalidDecision> {
        let json = write_question(instructions.as_ref(), &kind);
        let read = question(name, json.as_part(), &Path::Root(path))?;
        Ok(Self { instructions: present(instructions), kind, ..read })
    }

    /// Returns true if the questions differ only in their text: same type, same number of options or levels.
    pub(crate) fn is_form_of(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (QuestionKind::Choice { options }, QuestionKind::Choice { options: others }) => {
                options.len() == others.len()
            }
            (QuestionKind::Score { levels }, QuestionKind::Score { levels: others }) => levels.len() == others.len(),
            (own, other) => own.question_type() == other.question_type(),
        }
    }

    /// Copies the boolean values of options from another question, by position. The canonical form does not contain
    /// them.
    pub(crate) fn take_booleans(&mut self, from: &Self) {
        if let (QuestionKind::Choice { options }, QuestionKind::Choice { options: others }) =
            (&mut self.kind, &from.kind)
        {
            for (option, other) in options.iter_mut().zip(others) {
                option.boolean = other.boolean;
            }
        }
    }
}

/// Writes a question in canonical form.
fn write_question(instructions: Option<&Json>, kind: &QuestionKind) -> Json {
    let criteria = match kind {
        QuestionKind::Noul { when_true: None, when_false: None } | QuestionKind::Box => None,
        QuestionKind::Noul { when_true, when_false } => {
            let sides = [("true", when_true), ("false", when_false)];
            Some(Json::object(sides.iter().filter_map(|(side, json)| Some((*side, json.as_ref()?.text())))))
        }
        QuestionKind::Choice { options } => Some(Json::object(options.iter().map(|option| {
            let meaning = option.meaning.as_ref().map_or("null", Json::text);
            (option.name.as_str(), meaning)
        }))),
        QuestionKind::Score { levels } => Some(Json::array(levels.iter().map(Json::text))),
    };
    let type_name = Json::string(kind.as_str());
    let mut members = vec![("type", type_name.text())];
    members.extend(instructions.map(|instructions| ("instructions", instructions.text())));
    members.extend(criteria.as_ref().map(|criteria| ("criteria", criteria.text())));
    Json::object(members)
}
