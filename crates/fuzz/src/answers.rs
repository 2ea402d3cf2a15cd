//! The properties of checked answers: each inbound wire writes them as valid JSON with the name of every question, and
//! its output reads back as the same answers.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use domain::decision::Decision;
use domain::json::Json;
use domain::question::{
    Answer, AnswerRules, AnswerValue, Answers, ConfidenceSource, ProviderInput, Question, QuestionKind, Questions,
};
use domain::usage::{QuestionOutcomes, UsageSource};
use wires::canonical::{self, Extras};
use wires::client::DecisionResponse;
use wires::formats::{ResponseFormat, Shape, write};
use wires::openai::client_request::GeneratedNames;

use crate::codecs;

/// Rules for probabilities with two decimals and a `confidence` that passes through.
pub const RULES: AnswerRules = AnswerRules { decimals: 2, confidence: ConfidenceSource::Native };

/// Returns the response formats of the inbound wires.
pub fn response_formats() -> [ResponseFormat; 5] {
    [
        ResponseFormat::Contract,
        ResponseFormat::SystemOne,
        ResponseFormat::OpenAi(GeneratedNames::default()),
        ResponseFormat::Gemini,
        ResponseFormat::Sglang,
    ]
}

/// Writes answers, checked by these rules, by every inbound wire.
///
/// # Errors
/// The violated property.
pub fn check_every_wire(provider_input: &Arc<ProviderInput>, answers: &Answers, rules: AnswerRules) -> Result<()> {
    in_order(&provider_input.questions, answers)?;
    let has_box = typed_questions(provider_input).iter().any(|question| question.kind == QuestionKind::Box);
    for response_format in response_formats() {
        let form = response_format.shape();
        if has_box && form != Shape::SystemOne {
            // No other format has boxes.
            continue;
        }
        let body = write_body(&response_format, provider_input, answers)?;
        let names = match &provider_input.questions.typed {
            Some(_) => names(&response_format, &body).with_context(|| format!("answered as {form:?}"))?,
            // Opaque questions have one wire and are answered unchanged.
            None => continue,
        };
        let asked: Vec<&str> = typed_questions(provider_input).iter().map(|question| question.name.as_str()).collect();
        let refused = answers.typed().unwrap_or_default().iter().all(|answer| answer.value == AnswerValue::Refusal);
        if !(refused && form == Shape::Gemini) {
            ensure!(names == asked, "answered as {form:?}, the names are others than those that were asked");
        }
        reads_back(form, provider_input, answers, rules, &body).with_context(|| format!("answered as {form:?}"))?;
    }
    Ok(())
}

/// Returns the body of a response.
///
/// # Errors
/// The body is no JSON object or has a duplicate member.
pub fn write_body(
    response_format: &ResponseFormat,
    provider_input: &Arc<ProviderInput>,
    answers: &Answers,
) -> Result<Json> {
    let decision = Decision {
        id: "gen-dec-fuzz".parse()?,
        provider_input: Arc::clone(provider_input),
        answers: answers.clone(),
        model: "fuzz/decider".parse()?,
        provider: "Fuzz".to_owned(),
        input_tokens: 100,
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        cost: "0.000000000001".parse()?,
        attempts: std::sync::Arc::default(),
        funnel: Vec::new(),
        outcomes: QuestionOutcomes::default(),
        findings: Vec::new(),
    };
    let body = write(
        response_format,
        &DecisionResponse { decision: &decision, questions: typed_questions(provider_input), service_metadata: None },
    );
    let body =
        Json::parse(&body).with_context(|| format!("answered as {:?}, it is no JSON", response_format.shape()))?;
    check_unique_members(&body)?;
    Ok(body)
}

/// Rejects duplicate members, which readers interpret differently.
pub fn check_unique_members(object: &Json) -> Result<()> {
    let members = object.members().context("it is no object")?;
    let mut names = HashSet::new();
    ensure!(members.iter().all(|(name, _)| names.insert(name)), "a member is duplicated");
    Ok(())
}

/// Returns an answer to each question, of every kind in rotation: certain, undecided, refused.
pub fn sample_answers(questions: &[Question]) -> Json {
    let answers: Vec<Json> =
        questions.iter().enumerate().map(|(turn, question)| sample_answer(question, turn)).collect();
    canonical::in_order(questions.iter().map(|question| question.name.as_str()).zip(&answers))
}

fn sample_answer(question: &Question, turn: usize) -> Json {
    if turn % 7 == 6 {
        return canonical::refusal();
    }
    let extras = Extras { confidence: (turn % 2 == 1).then_some("0.5"), metadata: None };
    // Two outcomes share the probability, or one outcome has all of it.
    let spread = |count: usize| {
        let (first, second) = (turn % count, (turn + 1) % count);
        let mut texts = vec!["0"; count];
        if first == second || turn.is_multiple_of(3) {
            texts[first] = "1.00";
        } else {
            (texts[first], texts[second]) = ("0.6", "4e-1");
        }
        texts
    };
    match &question.kind {
        QuestionKind::Noul { .. } => canonical::noul(["0", "0.07", "1", "5e-1"][turn % 4], extras),
        QuestionKind::Choice { options } => {
            let probabilities = spread(options.len());
            canonical::choice(options, &options[turn % options.len()].name, &probabilities, extras)
        }
        QuestionKind::Score { levels } => {
            let probabilities = spread(levels.len());
            let numbers = probabilities.iter().enumerate();
            let expected: usize = numbers
                .map(|(level, text)| {
                    level
                        * match *text {
                            "1.00" => 10,
                            "0.6" => 6,
                            "4e-1" => 4,
                            _ => 0,
                        }
                })
                .sum();
            let score = format!("{}.{}", expected / 10, expected % 10);
            canonical::score(levels, &score, &probabilities, extras)
        }
        QuestionKind::Box => {
            Json::object([("type", "\"box\""), ("box", r#"{"top":0,"left":0.25,"bottom":1,"right":0.75}"#)])
        }
    }
}

fn typed_questions(provider_input: &ProviderInput) -> &[Question] {
    provider_input.questions.typed.as_deref().unwrap_or_default()
}

/// Checks that typed answers and their JSON have the order of the questions.
fn in_order(questions: &Questions, answers: &Answers) -> Result<()> {
    let Some(asked) = &questions.typed else { return Ok(()) };
    let typed = answers.typed().context("typed questions have answers without type")?;
    let members = answers.json().members().context("the answers are not an object")?;
    let asked = || asked.iter().map(|question| &question.name);
    ensure!(typed.iter().map(|answer| &answer.name).eq(asked()), "the answers are in another order");
    ensure!(members.iter().map(|(name, _)| name).eq(asked()), "the answers' JSON is in another order");
    Ok(())
}

/// Returns the names in a body, in their order.
fn names(response_format: &ResponseFormat, body: &Json) -> Result<Vec<String>> {
    let answers = member(body, "answers").context("there are no answers")?;
    if let ResponseFormat::OpenAi(_) = response_format {
        let elements = answers.elements().context("the answers are no array")?;
        let name = |answer: &Json| member(answer, "name").or(member(answer, "type"));
        return elements
            .iter()
            .map(|answer| name(answer).and_then(|name| name.as_string()).context("no name"))
            .collect();
    }
    Ok(answers.members().context("the answers are not an object")?.into_iter().map(|(name, _)| name).collect())
}

/// Returns the member of that name.
pub fn member(json: &Json, name: &str) -> Option<Json> {
    json.members()?.into_iter().find(|(member, _)| member == name).map(|(_, value)| value)
}

/// Reads an inbound wire's output by the outbound wire of the same format. Skips values that the format cannot express:
/// boxes, unanswered questions, missing distributions, and the refusal of a single question.
fn reads_back(
    form: Shape,
    provider_input: &Arc<ProviderInput>,
    answers: &Answers,
    rules: AnswerRules,
    body: &Json,
) -> Result<()> {
    let typed = answers.typed().unwrap_or_default();
    let all_refused = typed.iter().all(|answer| answer.value == AnswerValue::Refusal);
    let can_say = |answer: &Answer| match (&answer.value, form) {
        (_, Shape::SystemOne) | (AnswerValue::Noul { .. }, _) | (AnswerValue::Refusal, Shape::OpenAi) => true,
        (AnswerValue::Choice { probabilities, .. } | AnswerValue::Score { probabilities, .. }, _) => {
            probabilities.is_some()
        }
        (AnswerValue::Refusal, Shape::Gemini) => all_refused,
        _ => false,
    };
    if !typed.iter().all(can_say) {
        return Ok(());
    }
    let read = codecs::of_shape(form).read(&provider_input.questions, body.text().as_bytes());
    let read = read.ok().context("it does not read back")?;
    let rules = AnswerRules { confidence: ConfidenceSource::Native, ..rules };
    let again = Answers::check(&provider_input.questions, &read.answers, rules);
    let again = again.map_err(anyhow::Error::msg).context("what reads back is not believed")?;
    let pairs = again.typed().unwrap_or_default().iter().zip(typed);
    for (again, first) in pairs {
        ensure!(same(&again.value, &first.value), "what reads back is another answer");
    }
    Ok(())
}

/// Compares two answers except for their confidence, which a wire may compute or omit.
fn same(left: &AnswerValue, right: &AnswerValue) -> bool {
    let near = |left: f64, right: f64| (left - right).abs() < 1e-9;
    let all_near = |left: &Option<Vec<f64>>, right: &Option<Vec<f64>>| match (left, right) {
        (Some(left), Some(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| near(*left, *right))
        }
        (left, right) => left.is_none() && right.is_none(),
    };
    match (left, right) {
        (AnswerValue::Noul { probability: left }, AnswerValue::Noul { probability: right }) => near(*left, *right),
        (
            AnswerValue::Choice { chosen: left, probabilities: left_given, .. },
            AnswerValue::Choice { chosen: right, probabilities: right_given, .. },
        ) => left == right && all_near(left_given, right_given),
        (
            AnswerValue::Score { score: left, probabilities: left_given, .. },
            AnswerValue::Score { score: right, probabilities: right_given, .. },
        ) => near(*left, *right) && all_near(left_given, right_given),
        (left, right) => left == right,
    }
}
