//! Result files with planted answers.

use domain::evaluation::MissingDecision;
use domain::statistics::{Decision, Probability};

use super::*;

fn header(version: u32) -> Header {
    header_of(version, "?")
}

fn header_of(version: u32, instructions: &str) -> Header {
    let config =
        format!(r#"{{"models":["a/b"],"questions":{{"refund":{{"type":"noul","instructions":"{instructions}"}}}}}}"#);
    let preset = format!(r#"{{"data":{{"designated_version":{{"version":{version},"config":{config}}}}}}}"#);
    Header::of_preset("triage", &Json::parse(&preset).unwrap()).unwrap()
}

fn row(item: &str, answers: &str) -> ResultRow {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    ResultRow {
        item: item.to_owned(),
        labels: raw(r#"{"refund":true}"#),
        state_bytes: 5,
        asked: "a/b".to_owned(),
        id: "gen-dec-1".to_owned(),
        model: "a/b".to_owned(),
        provider: "Alpha".to_owned(),
        wire: "chat-completions".to_owned(),
        escalated_questions: "all".to_owned(),
        answers: raw(answers),
        cost: raw("0.000000000001"),
        latency_ms: 7,
    }
}

const ANSWER: &str = r#"{"refund":{"type":"noul","noul":0.2,"metadata":{"method":"logprobs"}}}"#;

#[test]
fn result_file_keeps_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut results = Results::open(&path, &header(1)).unwrap();
    results.add(row("1aa", ANSWER)).unwrap();
    let busy = Results::open(&path, &header(1)).err().unwrap();
    assert!(busy.to_string().contains("in use"), "{busy}");
    drop(results);
    let whole = std::fs::read_to_string(&path).unwrap();
    for rest in ["", "{\"item\":\"2b"] {
        std::fs::write(&path, format!("{whole}{rest}")).unwrap();
        assert_eq!(Results::read(&path).unwrap().rows.len(), 1);
        let results = Results::open(&path, &header(1)).unwrap();
        assert_eq!((results.rows.len(), std::fs::read_to_string(&path).unwrap()), (1, whole.clone()));
    }
    let other = Results::open(&path, &header(2)).err().unwrap();
    assert!(other.to_string().contains("version 1 of the preset"), "{other}");
    // Another server may have a preset of this name.
    let other = Results::open(&path, &header_of(1, "!")).err().unwrap();
    assert!(other.to_string().contains("other questions of version 1"), "{other}");
    // A file that was cut in its first line begins anew; another file is not touched.
    std::fs::write(&path, &whole[..20]).unwrap();
    assert!(Results::open(&path, &header(1)).unwrap().rows.is_empty());
    for text in ["a letter", "a letter\nwith a rest"] {
        std::fs::write(&path, text).unwrap();
        assert!(Results::open(&path, &header(1)).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn answers_are_read_with_their_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut results = Results::open(&path, &header(1)).unwrap();
    for item in 1..=3 {
        results.add(row(&format!("{item}"), ANSWER)).unwrap();
    }
    let answers = results.answers().unwrap();
    let [first, _, last] = &answers[..] else { panic!("{} answers", answers.len()) };
    assert_eq!((first.is_for_candidates, last.is_for_candidates), (true, false));
    assert_eq!(
        (last.decision, last.label),
        (Ok(Decision::Noul(false)), Some((Decision::Noul(true), LabelSource::Reference)))
    );
    assert_eq!(last.score.map(Probability::get), Some(0.8));
    assert_eq!((last.group.origin.method.as_str(), last.cost), ("label_probabilities", Usd::from_pico(1)));
    let bad = row("44", r#"{"refund":{"type":"noul","noul":2}}"#);
    assert!(results.check(&bad).is_err() && results.check(&row("44", ANSWER)).is_ok());
    results.add(bad).unwrap();
    assert!(format!("{:#}", results.answers().unwrap_err()).contains("the answer gen-dec-1"));
}

#[test]
fn corrected_label_replaces_the_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut results = Results::open(&path, &header(1)).unwrap();
    for item in ["11", "12"] {
        results.add(row(item, ANSWER)).unwrap();
    }
    let item = |id: &str, labels: &str| Item {
        id: id.to_owned(),
        state: Json::parse("1").unwrap(),
        labels: Json::parse(labels).unwrap(),
    };
    let items = [item("12", r#"{"refund":false}"#), item("11", r#"{"refund":true}"#), item("13", "{}")];
    let answered = results.take_labels(&items).unwrap();
    assert_eq!(answered.into_iter().map(|(item, _)| item).collect::<Vec<_>>(), ["11", "12"]);
    let labels = |results: &Results| {
        let all = results.rows.iter().map(|row| (row.item.clone(), row.labels.get().to_owned()));
        all.collect::<Vec<_>>()
    };
    let expected = [("11", r#"{"refund":true}"#), ("12", r#"{"refund":false}"#)];
    let expected = expected.map(|(item, labels)| (item.to_owned(), labels.to_owned()));
    assert_eq!((labels(&results), labels(&Results::read(&path).unwrap())), (expected.to_vec(), expected.to_vec()));
    let length = std::fs::metadata(&path).unwrap().len();
    results.take_labels(&items).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
    let missing = results.take_labels(&items[1..]).unwrap_err().to_string();
    assert!(missing.contains("a state that the dataset lacks"), "{missing}");
}

#[test]
fn refusals_and_failed_requests_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut results = Results::open(&path, &header(1)).unwrap();
    let failure = |item: &str, asked: &str| FailureRow {
        item: item.to_owned(),
        asked: asked.to_owned(),
        error: "500: no".to_owned(),
    };
    for (item, asked) in [("11", "a/b"), ("22", "a/b"), ("11", "a/b"), ("11", "c/d")] {
        results.add_failure(failure(item, asked)).unwrap();
    }
    results.add(row("11", r#"{"refund":{"type":"refusal","refusal":"no"}}"#)).unwrap();
    drop(results);
    let results = Results::open(&path, &header(1)).unwrap();
    assert_eq!(results.failed_requests(), [("a/b".to_owned(), 1), ("c/d".to_owned(), 1)].into());
    let [refusal] = &results.answers().unwrap()[..] else { panic!("one answer") };
    assert_eq!((refusal.decision, refusal.score), (Err(MissingDecision::Refusal), None));
}

#[test]
fn method_follows_the_wire() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = Results::open(&folder.path().join("results"), &header(1)).unwrap();
    let of_wire = |item: &str, wire: &str, answer: &str| ResultRow { wire: wire.to_owned(), ..row(item, answer) };
    let plain = r#"{"refund":{"type":"noul","noul":0.2}}"#;
    let structured = r#"{"refund":{"type":"noul","noul":0.2,"metadata":{"method":"structured"}}}"#;
    for (item, wire, answer) in [("11", "chat-completions", plain), ("22", "system-one", structured)] {
        results.add(of_wire(item, wire, answer)).unwrap();
    }
    let methods: Vec<String> =
        results.answers().unwrap().into_iter().map(|answer| answer.group.origin.method).collect();
    assert_eq!(methods, ["stated", "native"]);
    results.add(of_wire("33", "", plain)).unwrap();
    assert!(format!("{:#}", results.answers().unwrap_err()).contains("the wire \"\" is unknown"));
}
