//! Answers computed from word overlap.

use domain::json::Json;
use domain::question::{ChoiceOption, Question, QuestionKind, Questions};

use super::distribution::Distribution;
use super::words::{Words, of_json};

/// Returns the object of answers, in the order of the questions.
pub(super) fn answers(questions: &Questions, state: Option<&Json>) -> Json {
    let state = state.map_or_else(Words::default, |state| of_json(state.text()));
    let text = if let Some(typed) = &questions.typed {
        object(typed.iter().map(|question| (question.name.as_str(), answer(question, &state))))
    } else {
        let cents = probability(of_json(questions.json.text()).shared_with(&state), 0);
        object([("answer", format!(r#"{{"type":"noul","noul":{}}}"#, decimal(cents)))])
    };
    // The text is always JSON; a test with generated questions checks that.
    Json::parse(&text).unwrap_or_else(|_| Json::from(serde_json::Value::Null))
}

fn answer(question: &Question, state: &Words) -> String {
    match &question.kind {
        QuestionKind::Noul { when_true, when_false } => {
            noul([&question.instructions, when_true], when_false.as_ref(), state)
        }
        QuestionKind::Choice { options } => choice(options, state),
        QuestionKind::Score { levels } => score(levels, state),
        // Boxes need an image, which has no words.
        QuestionKind::Box => r#"{"type":"refusal"}"#.to_owned(),
    }
}

fn noul(for_yes: [&Option<Json>; 2], for_no: Option<&Json>, state: &Words) -> String {
    let mut yes = Words::default();
    for json in for_yes.into_iter().flatten() {
        yes.add_json(json.text());
    }
    let no = for_no.map(|json| of_json(json.text())).unwrap_or_default();
    let cents = probability(yes.shared_but_not_with(state, &no), no.shared_but_not_with(state, &yes));
    format!(r#"{{"type":"noul","noul":{}}}"#, decimal(cents))
}

fn choice(options: &[ChoiceOption], state: &Words) -> String {
    let overlaps: Vec<usize> = options
        .iter()
        .map(|option| {
            let mut words = Words::default();
            words.add_text(&option.name);
            if let Some(meaning) = &option.meaning {
                words.add_json(meaning.text());
            }
            words.shared_with(state)
        })
        .collect();
    let distribution = Distribution::of(&overlaps);
    let chosen = options.get(distribution.mode()).map_or("", |option| option.name.as_str());
    let probabilities = options.iter().map(|option| option.name.as_str()).zip(decimals(&distribution));
    format!(
        r#"{{"type":"choice","choice":{},"confidence":{},"probabilities":{}}}"#,
        string(chosen),
        decimal(distribution.peak_confidence()),
        object(probabilities)
    )
}

fn score(levels: &[Json], state: &Words) -> String {
    let overlaps: Vec<usize> = levels.iter().map(|level| of_json(level.text()).shared_with(state)).collect();
    let distribution = Distribution::of(&overlaps);
    let numbers: Vec<String> = (0..levels.len()).map(|level| level.to_string()).collect();
    let legend = numbers.iter().map(String::as_str).zip(levels.iter().map(|level| level.text().to_owned()));
    format!(
        r#"{{"type":"score","score":{},"confidence":{},"legend":{},"probabilities":{}}}"#,
        decimal(distribution.expectation()),
        decimal(distribution.scale_confidence()),
        object(legend),
        object(numbers.iter().map(String::as_str).zip(decimals(&distribution)))
    )
}

/// Returns the probability of yes in hundredths, between 1 and 99; 50 without any overlap.
fn probability(for_yes: usize, for_no: usize) -> u32 {
    let (yes, all) = (2 * for_yes + 1, 2 * (for_yes + for_no) + 2);
    let cents = (200 * yes + all) / (2 * all);
    u32::try_from(cents).unwrap_or(99).clamp(1, 99)
}

fn decimals(distribution: &Distribution) -> impl Iterator<Item = String> {
    distribution.hundredths().iter().copied().map(decimal)
}

/// Formats hundredths as a decimal number: `0.07`, `0.5`, `1.0`.
fn decimal(hundredths: u32) -> String {
    let (whole, cents) = (hundredths / 100, hundredths % 100);
    if cents % 10 == 0 { format!("{whole}.{}", cents / 10) } else { format!("{whole}.{cents:02}") }
}

fn string(text: &str) -> String {
    Json::from(serde_json::Value::from(text)).text().to_owned()
}

/// Builds an object of members that are JSON already.
fn object<'a>(members: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let members: Vec<String> = members.into_iter().map(|(name, value)| format!("{}:{value}", string(name))).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests;
