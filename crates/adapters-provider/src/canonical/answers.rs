//! Answers in canonical form, from numbers as the provider wrote them.

use domain::decision::ChoiceOption;
use domain::json::Json;

/// What an answer may carry beside what it says: JSON texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// The provider's own confidence.
    pub confidence: Option<&'a str>,
    /// How the answer was made: an object.
    pub metadata: Option<&'a str>,
}

/// To a yes-or-no question, from the text of the probability of yes.
pub fn noul(probability: &str, extras: Extras<'_>) -> Json {
    written("noul", &[("noul", probability)], extras)
}

/// To a choice: the name of the option that was chosen, and the text of a probability an option, in the order of the
/// options.
pub fn choice(options: &[ChoiceOption], chosen: &str, probabilities: &[&str], extras: Extras<'_>) -> Json {
    let chosen = Json::string(chosen);
    let names = options.iter().map(|option| option.name.as_str());
    let probabilities = Json::object(names.zip(probabilities.iter().copied()));
    written("choice", &[("choice", chosen.text()), ("probabilities", probabilities.text())], extras)
}

/// To a score: the text of the score and of a probability a level. The legend repeats what was asked.
pub fn score(levels: &[Json], score: &str, probabilities: &[&str], extras: Extras<'_>) -> Json {
    let numbers: Vec<String> = (0..levels.len()).map(|level| level.to_string()).collect();
    let numbers = || numbers.iter().map(String::as_str);
    let probabilities = Json::object(numbers().zip(probabilities.iter().copied()));
    let legend = legend(levels);
    written("score", &[("score", score), ("legend", legend.text()), ("probabilities", probabilities.text())], extras)
}

/// What each level of a score means, by its number.
pub fn legend(levels: &[Json]) -> Json {
    let numbers: Vec<String> = (0..levels.len()).map(|level| level.to_string()).collect();
    Json::object(numbers.iter().map(String::as_str).zip(levels.iter().map(Json::text)))
}

/// The model will not answer this question.
pub fn refusal() -> Json {
    written("refusal", &[], Extras::default())
}

/// The answers by their questions' names, in this order.
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
