//! Answers in canonical form, from numbers as the provider wrote them.

use domain::json::Json;
use domain::question::ChoiceOption;

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
