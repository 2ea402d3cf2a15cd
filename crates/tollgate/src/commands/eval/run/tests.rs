//! The highest cost of a run, and the outcomes of its requests.

use super::*;

fn endpoint(wire: &str, max_questions: Option<u64>) -> ModelEndpoint {
    ModelEndpoint {
        provider: "acme-eu".to_owned(),
        provider_name: "Acme".to_owned(),
        wire: wire.to_owned(),
        price: Some("0.000001".parse().unwrap()),
        max_questions,
        escalated_questions: EscalatedQuestions::All,
    }
}

#[test]
fn answer_of_an_unknown_endpoint_is_an_error() {
    let model = |endpoints| Model { name: "a/b".to_owned(), id: "a/b".to_owned(), endpoints, overhead: 0 };
    let both = model(vec![endpoint("system-one", None), endpoint("system-one", None)]);
    assert_eq!(both.endpoint("Acme").map(|found| found.wire.as_str()).ok(), Some("system-one"));
    let differing = model(vec![endpoint("system-one", None), endpoint(CHAT, None)]);
    // Two providers may have one name.
    let other = ModelEndpoint { provider: "acme-us".to_owned(), ..endpoint("system-one", None) };
    let namesakes = model(vec![endpoint("system-one", None), other]);
    for (model, provider) in [(&both, "Acme, Beta"), (&differing, "Acme"), (&namesakes, "Acme"), (&both, "acme-eu")] {
        let error = model.endpoint(provider).err().unwrap().to_string();
        assert!(error.contains("is not known") && error.contains("one endpoint"), "{error}");
    }
}

#[test]
fn every_call_has_the_whole_state() {
    let cost = |wire: &str, max_questions| {
        let model = Model {
            name: "a/b".to_owned(),
            id: String::new(),
            endpoints: vec![endpoint(wire, max_questions)],
            overhead: 0,
        };
        let cost = model.highest_cost(1_000, 5, TokenFactor::ONE).unwrap().round_up();
        (cost, model.is_chat())
    };
    let (once, _) = cost("system-one", None);
    let times = |count: usize| (1..count).fold(once, |sum, _| sum?.checked_add(once?));
    for (max_questions, calls) in [(Some(400), 1), (Some(5), 1), (Some(2), 3), (Some(1), 5), (Some(0), 5)] {
        assert_eq!(cost("system-one", max_questions), (times(calls), false), "{max_questions:?}");
    }
    assert_eq!(cost(CHAT, Some(400)), (times(5), true));
}

#[test]
fn answers_are_written_after_a_stop_and_checked_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let config = r#"{"models":["a/b"],"questions":{"q":{"type":"noul","instructions":"?"}}}"#;
    let preset = Json::parse(&format!(r#"{{"data":{{"designated_version":{{"version":1,"config":{config}}}}}}}"#));
    let header = Header::of_preset("p", &preset.unwrap()).unwrap();
    let mut results = Results::open(&path, &header).unwrap();
    let mut unwritable = Results::read(&path).unwrap();
    let endpoints = vec![endpoint("system-one", None)];
    let model = Model { name: "a/b".to_owned(), id: "a/b".to_owned(), endpoints, overhead: 0 };
    let answer = |number: usize, noul: &str| {
        let (state, labels) = (Json::string("s"), Json::parse("{}").unwrap());
        let item = Item { id: format!("{number}-a"), state, labels };
        let body = format!(
            r#"{{"id":"gen-dec-{number}","provider":"Acme","model":"a/b","usage":{{"cost":0.1}},
            "answers":{{"q":{{"type":"noul","noul":{noul}}}}}}}"#
        );
        Outcome::Answer(result_row(&item, &model, &body, Duration::ZERO).unwrap().into())
    };
    let mut counts = Counts::default();
    counts.add(answer(1, "0.5"), &mut unwritable);
    assert!(counts.stop.as_ref().is_some_and(|reason| reason.contains("cannot write")), "{:?}", counts.stop);
    counts.add(answer(2, "0.5"), &mut results);
    counts.add(answer(3, "7"), &mut results);
    assert_eq!((counts.answered, counts.failed(), counts.stop.is_some()), (1, 1, true));
    let read = Results::read(&path).unwrap();
    let answers = read.answers().unwrap();
    assert_eq!(answers.iter().map(|answer| answer.group.origin.provider.as_str()).collect::<Vec<_>>(), ["acme-eu"]);
    assert_eq!(read.failed_requests(), [("a/b".to_owned(), 1)].into());
}
