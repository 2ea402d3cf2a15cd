//! Requirements on a report.

use std::str::FromStr;

use thiserror::Error;

use super::{AnswerOrigin, Group, GroupReport, Report};
use crate::statistics::Probability;

/// A required accuracy of a question: `refund.accuracy>=0.9`. The lower limit of the interval is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    question: String,
    accuracy: Probability,
}

/// A text is no requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be QUESTION.accuracy>=NUMBER with a number from 0 to 1, for example refund.accuracy>=0.9")]
pub struct InvalidRequirement;

impl FromStr for Requirement {
    type Err = InvalidRequirement;

    fn from_str(text: &str) -> Result<Self, InvalidRequirement> {
        let (figure, number) = text.rsplit_once(">=").ok_or(InvalidRequirement)?;
        let question = figure.trim().strip_suffix(".accuracy").filter(|question| !question.is_empty());
        let accuracy = number.trim().parse().ok().and_then(|number| Probability::new(number).ok());
        Ok(Self {
            question: question.ok_or(InvalidRequirement)?.to_owned(),
            accuracy: accuracy.ok_or(InvalidRequirement)?,
        })
    }
}

impl Requirement {
    /// Returns a sentence for each decisive group of the question that does not meet the requirement, and one if there is
    /// no such group.
    pub fn failures(&self, report: &Report) -> Vec<String> {
        let Self { question, accuracy } = self;
        let of_question = |group: &&GroupReport| group.is_decisive && group.group.question == *question;
        let mut groups = report.groups.iter().filter(of_question).peekable();
        if groups.peek().is_none() {
            return vec![format!(
                "{question}.accuracy>={}: the question has no answers in the version that decides",
                accuracy.get()
            )];
        }
        let lower = |group: &GroupReport| group.labelled.accuracy().interval().lower;
        let failed = groups.filter(|group| lower(group) < accuracy.get());
        let sentence = |group: &GroupReport| {
            let (Group { preset_version, origin, .. }, lower) = (&group.group, lower(group));
            let AnswerOrigin { model, provider, .. } = origin;
            format!(
                "{question}.accuracy>={}: the lower limit of {model} by {provider} (version {preset_version}) is {lower:.3}",
                accuracy.get()
            )
        };
        failed.map(sentence).collect()
    }
}
