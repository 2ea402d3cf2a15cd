use super::*;
use crate::decision::DecisionDraft;
use crate::json::Json;
use crate::money::Price;
use crate::pricing::TokenPrices;
use crate::question::{Attachments, QuestionKind, QuestionType, StateForm};
use crate::routing::{AttachmentForm, EndpointLimits, Wire};
use proptest::prelude::*;

/// Plans without preferences.
fn plan(
    provider_input: &Arc<ProviderInput>,
    candidates: &[Candidate],
) -> Result<Vec<SubRequest>, UnsupportedQuestions> {
    super::plan(provider_input, candidates, Precedence::default())
}

const FIRST: Precedence = Precedence { first_endpoint: true, across_models: false };

fn candidate(name: usize, change: impl FnOnce(&mut Endpoint)) -> Candidate {
    let model: crate::model::ModelId = "acme/judge".parse().unwrap();
    let provider = format!("p{name}").parse().unwrap();
    let mut endpoint = Endpoint::new(model.clone(), provider, Wire::SystemOne, name.to_string());
    change(&mut endpoint);
    let prices = TokenPrices { prompt: Price::ZERO, completion: Price::ZERO };
    Candidate { model, endpoint: Arc::new(endpoint), prices, is_priced: true }
}

fn any() -> Candidate {
    candidate(0, |_| {})
}

fn limited(name: usize, limits: EndpointLimits) -> Candidate {
    candidate(name, |endpoint| endpoint.own_limits = limits)
}

fn questions_at_most(name: usize, max: usize) -> Candidate {
    limited(name, EndpointLimits { max_questions: Some(max), ..EndpointLimits::default() })
}

fn bytes_at_most(name: usize, max: usize) -> Candidate {
    limited(name, EndpointLimits { max_body_bytes: Some(max), ..EndpointLimits::default() })
}

fn of_types(name: usize, types: &[QuestionType]) -> Candidate {
    candidate(name, |endpoint| endpoint.question_types = Some(types.to_vec()))
}

fn provider_input(questions: &str) -> Arc<ProviderInput> {
    let draft = DecisionDraft {
        model: Json::parse("\"acme/judge\"").ok(),
        questions: Json::parse(questions).ok(),
        state: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap().provider_input
}

fn nouls(count: usize) -> Arc<ProviderInput> {
    let questions: Vec<String> =
        (0..count).map(|number| format!(r#""q{number}":{{"type":"noul","instructions":"?"}}"#)).collect();
    provider_input(&format!("{{{}}}", questions.join(",")))
}

/// The questions and the candidates of each sub-request.
fn shape(parts: &[SubRequest]) -> Vec<(Vec<&str>, Vec<&str>)> {
    parts.iter().map(names).collect()
}

fn names(part: &SubRequest) -> (Vec<&str>, Vec<&str>) {
    let typed = part.input.questions.typed.as_deref().into_iter().flatten();
    let names = typed.map(|question| question.name.as_str()).collect();
    (names, part.candidates.iter().map(|candidate| &*candidate.endpoint.upstream_model).collect())
}

#[test]
fn plan_splits_for_named_first_endpoint() {
    let (provider_input, candidates) = (nouls(3), [questions_at_most(0, 2), any()]);
    let parts = super::plan(&provider_input, &candidates, FIRST).unwrap();
    let first: Vec<&str> = shape(&parts).iter().map(|(_, able)| able[0]).collect();
    assert_eq!(first, ["0", "0"]);
    // An endpoint that does not support every question gets no precedence.
    let choice = super::tests::provider_input(r#"{"c":{"type":"choice","criteria":{"x":null}}}"#);
    let mixed = super::plan(&choice, &[of_types(0, &[QuestionType::Noul]), any()], FIRST).unwrap();
    assert_eq!(mixed.len(), 1);
}

#[test]
fn plan_prefers_split_over_other_model() {
    let other = || Candidate { model: "acme/other".parse().unwrap(), ..any() };
    let candidates = [questions_at_most(1, 3), questions_at_most(2, 1), other()];
    let parts = plan(&nouls(4), &candidates).unwrap();
    assert_eq!(
        shape(&parts),
        [(vec!["q0", "q1", "q2"], vec!["1", "0"]), (vec!["q3"], vec!["1", "2", "0"])],
        "the model that was asked for, in two parts, and the other behind it"
    );
    // The other model answers if the first one cannot answer everything.
    let parts = plan(&nouls(2), &[of_types(1, &[QuestionType::Score]), other()]).unwrap();
    assert_eq!(shape(&parts), [(vec!["q0", "q1"], vec!["0"])]);
    let across = Precedence { across_models: true, ..Precedence::default() };
    assert_eq!(super::plan(&nouls(4), &candidates, across).unwrap().len(), 1);
}

#[test]
fn plan_skips_first_endpoint_that_needs_too_many_calls() {
    let many = nouls(MAX_SUB_REQUESTS + 1);
    let parts = super::plan(&many, &[questions_at_most(1, 1), any()], FIRST).unwrap();
    let [part] = &parts[..] else { panic!("one part") };
    assert_eq!(&*part.candidates[0].endpoint.upstream_model, "0");
}

#[test]
fn plan_reports_count_when_split_needs_too_many_calls() {
    let many = nouls(20_000);
    assert_eq!(plan(&many, &[questions_at_most(0, 2)]).unwrap_err(), UnsupportedQuestions::SubRequests(10_000));
}

#[test]
fn smaller_sub_requests_use_endpoints_with_lower_limits() {
    let provider_input = nouls(3);
    let parts = plan(&provider_input, &[questions_at_most(0, 2), any(), questions_at_most(2, 1)]).unwrap();
    let [part] = &parts[..] else { panic!("one part") };
    let smaller = part.smaller(&[]).unwrap();
    assert_eq!(smaller.len(), 2, "two questions and one");
    let last = smaller[0].smaller(&[]).unwrap();
    assert_eq!(shape(&last), [(vec!["q0"], vec!["2"]), (vec!["q1"], vec!["2"])]);
    assert!(last[0].smaller(&[]).is_none(), "no candidate is left");
}

#[test]
fn plan_keeps_input_whole_when_one_endpoint_supports_it() {
    let provider_input = nouls(3);
    let parts = plan(&provider_input, &[questions_at_most(0, 2), questions_at_most(1, 3), any()]).unwrap();
    let [part] = &parts[..] else { panic!("one part") };
    assert!(Arc::ptr_eq(&part.input, &provider_input), "as it came");
    assert_eq!(shape(&parts)[0].1, ["1", "0"], "only those that can answer all of it, in their order");
}

#[test]
fn plan_splits_questions_by_limit_of_first_endpoint() {
    let parts = plan(&nouls(5), &[questions_at_most(0, 2), questions_at_most(1, 1), questions_at_most(2, 4)]).unwrap();
    let expected =
        [(vec!["q0", "q1"], vec!["0", "2"]), (vec!["q2", "q3"], vec!["0", "2"]), (vec!["q4"], vec!["0", "1", "2"])];
    assert_eq!(shape(&parts), expected, "as many as the first takes; the others where they can");
}

#[test]
fn plan_assigns_each_type_to_endpoints_that_support_it() {
    use QuestionType::{Choice, Noul, Score};
    let mixed = provider_input(
        r#"{"a":{"type":"noul","instructions":"?"},"b":{"type":"score","criteria":["x"]},
            "c":{"type":"noul","instructions":"?"},"d":{"type":"choice","criteria":{"x":null}}}"#,
    );
    let parts =
        plan(&mixed, &[of_types(0, &[Noul]), of_types(1, &[Score, Choice]), of_types(2, &[Noul, Choice])]).unwrap();
    let expected = [(vec!["a", "c"], vec!["0", "2"]), (vec!["b"], vec!["1"]), (vec!["d"], vec!["1", "2"])];
    assert_eq!(shape(&parts), expected);
    assert_eq!(
        plan(&mixed, &[of_types(0, &[Noul]), of_types(1, &[Choice])]).unwrap_err(),
        UnsupportedQuestions::QuestionType(Score)
    );
}

#[test]
fn plan_applies_limits_on_options_and_levels() {
    let limits = EndpointLimits { max_options: Some(2), max_levels: Some(3), ..EndpointLimits::default() };
    let choice = |options: usize| {
        let options: Vec<String> = (0..options).map(|option| format!("\"{option}\":null")).collect();
        provider_input(&format!(r#"{{"c":{{"type":"choice","criteria":{{{}}}}}}}"#, options.join(",")))
    };
    assert!(plan(&choice(2), &[limited(0, limits)]).is_ok());
    assert_eq!(plan(&choice(3), &[limited(0, limits)]).unwrap_err(), UnsupportedQuestions::Options(3));
    let score = |levels| {
        provider_input(&format!(r#"{{"s":{{"type":"score","criteria":[{}]}}}}"#, vec!["\"l\""; levels].join(",")))
    };
    assert!(plan(&score(3), &[limited(0, limits)]).is_ok());
    assert_eq!(plan(&score(4), &[limited(0, limits)]).unwrap_err(), UnsupportedQuestions::Levels(4));
    assert_eq!(plan(&choice(3), &[limited(0, limits), any()]).unwrap()[0].candidates.len(), 1);
}

#[test]
fn plan_applies_size_limits_to_the_byte() {
    let whole = nouls(2);
    let one = whole.with_questions(vec![whole.questions.typed.as_ref().unwrap()[0].clone()]);
    let fits = |max| plan(&whole, &[bytes_at_most(0, max)]);
    assert_eq!(fits(whole.len_bytes()).unwrap().len(), 1);
    let split = fits(whole.len_bytes() - 1).unwrap();
    assert_eq!(split.len(), 2);
    assert!(split.iter().all(|part| part.input.len_bytes() < whole.len_bytes()));
    assert_eq!(fits(one.len_bytes() - 1).unwrap_err(), UnsupportedQuestions::Size);
    let tokens = |max| limited(0, EndpointLimits { max_input_tokens: Some(max), ..EndpointLimits::default() });
    assert_eq!(plan(&whole, &[tokens(whole.len_bytes())]).unwrap().len(), 1);
    assert_eq!(plan(&whole, &[tokens(whole.len_bytes() - 1)]).unwrap().len(), 2);
}

#[test]
fn plan_counts_escaped_bytes_of_names() {
    let names: String = (0..20).map(|number| format!("{}\\u0001\\\"é{number}", "\\\\".repeat(number))).fold(
        String::new(),
        |all, name| {
            format!(r#"{all}{}"{name}":{{"type":"noul","instructions":"?"}}"#, if all.is_empty() { "" } else { "," })
        },
    );
    let whole = provider_input(&format!("{{{names}}}"));
    for question in whole.questions.typed.as_deref().into_iter().flatten() {
        let alone = whole.with_questions(vec![question.clone()]);
        assert!(alone.len_bytes() <= whole.len_bytes_without_questions() + question.len_bytes());
    }
    for max in 80..400 {
        let Ok(parts) = plan(&whole, &[bytes_at_most(0, max)]) else { continue };
        assert!(parts.iter().all(|part| part.input.len_bytes() <= max));
    }
}

#[test]
fn plan_splits_up_to_maximum_sub_requests() {
    assert_eq!(plan(&nouls(MAX_SUB_REQUESTS), &[questions_at_most(0, 1)]).unwrap().len(), MAX_SUB_REQUESTS);
    assert_eq!(
        plan(&nouls(MAX_SUB_REQUESTS + 1), &[questions_at_most(0, 1)]).unwrap_err(),
        UnsupportedQuestions::SubRequests(MAX_SUB_REQUESTS + 1)
    );
    assert_eq!(plan(&nouls(MAX_SUB_REQUESTS + 1), &[questions_at_most(0, 1), any()]).unwrap().len(), 1);
}

#[test]
fn plan_ignores_endpoint_without_questions() {
    assert!(plan(&nouls(1), &[questions_at_most(0, 0)]).is_err());
    assert_eq!(shape(&plan(&nouls(2), &[questions_at_most(0, 0), questions_at_most(1, 1)]).unwrap())[1].1, ["1"]);
}

#[test]
fn plan_does_not_split_opaque_questions() {
    let opaque = provider_input("\"is it on fire?\"");
    let chat = candidate(0, |endpoint| endpoint.wire = Wire::ChatCompletions);
    assert_eq!(plan(&opaque, std::slice::from_ref(&chat)).unwrap_err(), UnsupportedQuestions::Size);
    assert_eq!(plan(&opaque, &[chat, any()]).unwrap()[0].candidates.len(), 1);
    assert_eq!(plan(&opaque, &[bytes_at_most(0, 3)]).unwrap_err(), UnsupportedQuestions::Size);
}

#[test]
fn plan_sends_media_with_each_sub_request() {
    let mut with_media = (*nouls(2)).clone();
    with_media.attachments = Attachments::Images(Json::parse("[\"data:\"]").unwrap());
    let with_media = Arc::new(with_media);
    let taking = |name, form| {
        candidate(name, |endpoint: &mut Endpoint| {
            endpoint.attachments = form;
            endpoint.own_limits.max_questions = Some(1);
        })
    };
    let parts = plan(&with_media, &[taking(0, AttachmentForm::Images)]).unwrap();
    assert!(parts.len() == 2 && parts.iter().all(|part| part.input.attachments == with_media.attachments));
    let mut in_state = (*nouls(1)).clone();
    in_state.attachments = Attachments::InState;
    in_state.state_form = StateForm::GeminiParts;
    let gemini = candidate(3, |endpoint| {
        endpoint.wire = Wire::GeminiDecisions;
        endpoint.attachments = AttachmentForm::InState;
    });
    let all = [any(), taking(1, AttachmentForm::InState), gemini];
    assert_eq!(shape(&plan(&Arc::new(in_state), &all).unwrap())[0].1, ["3"]);
}

fn any_candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let small = |range: std::ops::Range<usize>| prop::option::of(range);
    let types = prop::option::of(prop::sample::subsequence(QuestionType::ALL.to_vec(), 0..=4));
    let one = (small(0..5), small(1..6), small(1..5), small(20..400), types);
    prop::collection::vec(one, 1..5).prop_map(|list| {
        let made = list.into_iter().enumerate().map(|(name, (questions, options, levels, bytes, types))| {
            candidate(name, |endpoint| {
                endpoint.question_types = types;
                endpoint.own_limits = EndpointLimits {
                    max_questions: questions,
                    max_options: options,
                    max_levels: levels,
                    max_body_bytes: bytes,
                    max_input_tokens: None,
                };
            })
        });
        made.collect()
    })
}

fn any_provider_input() -> impl Strategy<Value = Arc<ProviderInput>> {
    let noul = Just(r#"{"type":"noul","instructions":"?"}"#.to_owned());
    let choice = (1_usize..7).prop_map(|options| {
        let options: Vec<String> = (0..options).map(|option| format!("\"{option}\":null")).collect();
        format!(r#"{{"type":"choice", "criteria":{{{}}}}}"#, options.join(","))
    });
    let score = (1_usize..6)
        .prop_map(|levels| format!(r#"{{"type":"score","criteria":[{}]}}"#, vec!["\"level\""; levels].join(", ")));
    prop::collection::vec(prop_oneof![noul, choice, score], 1..20).prop_map(|questions| {
        let members: Vec<String> =
            questions.iter().enumerate().map(|(place, question)| format!("\"q{place}\":{question}")).collect();
        provider_input(&format!("{{{}}}", members.join(" , ")))
    })
}

/// A second implementation of the limits.
fn allows(endpoint: &Endpoint, provider_input: &ProviderInput) -> bool {
    let (limits, asked) = (endpoint.limits(), provider_input.questions.typed.as_ref().unwrap());
    let within = |most: Option<usize>, many: usize| most.is_none_or(|most| many <= most);
    let each = asked.iter().all(|question| {
        let counted = match &question.kind {
            QuestionKind::Choice { options } => within(limits.max_options, options.len()),
            QuestionKind::Score { levels } => within(limits.max_levels, levels.len()),
            QuestionKind::Noul { .. } | QuestionKind::Box => true,
        };
        let question_type = question.kind.question_type();
        counted && endpoint.question_types.as_ref().is_none_or(|types| types.contains(&question_type))
    });
    each && within(limits.max_questions, asked.len()) && within(limits.max_body_bytes, provider_input.len_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::testing::property_cases(1000, ProptestConfig::default().cases)))]

    #[test]
    fn plan_assigns_every_question_once_within_limits(provider_input in any_provider_input(), candidates in any_candidates()) {
        let asked = provider_input.questions.typed.as_ref().unwrap();
        let places = |part: &SubRequest| -> Vec<usize> {
            let typed = part.input.questions.typed.as_ref().unwrap();
            typed.iter().map(|question| asked.iter().position(|other| other == question).unwrap()).collect()
        };
        let Ok(parts) = plan(&provider_input, &candidates) else {
            // Then no candidate supports some question, except for the bytes of escaped names.
            let is_unsupported = asked.iter().any(|question| {
                let alone = provider_input.with_questions(vec![question.clone()]);
                let around = provider_input.len_bytes_without_questions() + question.len_bytes();
                let able = |endpoint: &Endpoint| allows(endpoint, &alone) && endpoint.has_room_for(around);
                !candidates.iter().any(|candidate| able(&candidate.endpoint))
            });
            prop_assert!(is_unsupported);
            return Ok(());
        };
        let mut held: Vec<usize> = parts.iter().flat_map(&places).collect();
        held.sort_unstable();
        prop_assert_eq!(held, (0..asked.len()).collect::<Vec<_>>());
        for part in &parts {
            prop_assert!(places(part).is_sorted(), "in the order of the questions");
            prop_assert!(!part.candidates.is_empty());
            prop_assert_eq!(&part.input.state, &provider_input.state);
            prop_assert!(part.candidates.iter().all(|candidate| allows(&candidate.endpoint, &part.input)));
        }
    }
}
