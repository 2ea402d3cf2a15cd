//! Random provider inputs within the capabilities of a format.

use std::collections::HashSet;

use domain::json::Json;
use domain::question::{ChoiceOption, ProviderInput, Question, QuestionKind, Questions};
use proptest::prelude::*;
use wires::formats::Shape;

/// Returns text with characters that need escaping, and others.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z_][a-zA-Z0-9_-]{0,11}",
        "[ -~]{0,12}",
        ".{0,6}",
        prop::sample::select(vec![
            "a\"b\\",
            "line\nfeed",
            "\u{1F600}",
            "é\u{301}",
            "\u{2028}",
            "true",
            "false",
            "null",
            "0",
            ""
        ])
        .prop_map(str::to_owned),
    ]
}

/// Returns text that is not blank.
fn visible_text() -> impl Strategy<Value = String> {
    text().prop_map(|text| if text.trim().is_empty() { "x".to_owned() } else { text })
}

/// Returns a string, object or array in compact JSON; never blank.
fn visible_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        text().prop_map(|text| Json::string(&text)),
        prop::sample::select(vec!["null", "true", "7.10", "1e400", "-0", "12345678901234567890", "[]", "{}"])
            .prop_map(|text| Json::parse(text).unwrap()),
    ];
    let nested = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(|all| Json::array(all.iter().map(Json::text))),
            prop::collection::vec((text(), inner), 1..3).prop_map(|all| object_of(&all)),
        ]
    });
    prop_oneof![
        visible_text().prop_map(|text| Json::string(&text)),
        prop::collection::vec((text(), nested.clone()), 1..3).prop_map(|all| object_of(&all)),
        prop::collection::vec(nested, 1..3).prop_map(|all| Json::array(all.iter().map(Json::text))),
        (text(), text()).prop_map(|(label, description)| {
            Json::object([("label", Json::string(&label).text()), ("description", Json::string(&description).text())])
        }),
    ]
}

fn object_of(members: &[(String, Json)]) -> Json {
    Json::object(members.iter().map(|(name, json)| (name.as_str(), json.text())))
}

/// Returns unique names that the format accepts.
fn names(form: Shape, count: std::ops::Range<usize>, of_options: bool) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), count).prop_map(move |names| {
        let mut taken = HashSet::new();
        let named = names.into_iter().enumerate().map(|(place, name)| {
            let name = match (form, of_options) {
                (Shape::SystemOne | Shape::OpenAi, _) | (Shape::Gemini, false) => name,
                (Shape::Gemini, true) => name.chars().filter(|c| !c.is_control()).collect::<String>().trim().to_owned(),
                (Shape::Sglang, _) => {
                    name.chars().filter(|c| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}')).collect()
                }
            };
            let key = name.trim().to_uppercase().to_lowercase();
            let may_be_blank =
                form == Shape::SystemOne || form == Shape::OpenAi || form == Shape::Gemini && !of_options;
            let name =
                if taken.contains(&key) || key.is_empty() && !may_be_blank { format!("n{place}-") } else { name };
            taken.insert(name.trim().to_uppercase().to_lowercase());
            name
        });
        named.collect()
    })
}

fn kind(form: Shape) -> impl Strategy<Value = QuestionKind> {
    let side = || prop::option::of(visible_json());
    let least = if form == Shape::SystemOne { 1 } else { 2 };
    let options = (names(form, least..7, true), prop::collection::vec(prop::option::of(visible_json()), 7), 0..6_usize);
    prop_oneof![
        (side(), side()).prop_map(|(when_true, when_false)| QuestionKind::Noul { when_true, when_false }),
        options.prop_map(move |(names, meanings, boolean)| {
            let mut options: Vec<ChoiceOption> =
                names.into_iter().zip(meanings).map(|(name, meaning)| ChoiceOption::new(name, meaning)).collect();
            if form == Shape::OpenAi {
                with_booleans(&mut options, boolean);
            }
            QuestionKind::Choice { options }
        }),
        prop::collection::vec(visible_json(), least..11).prop_map(|levels| QuestionKind::Score { levels }),
    ]
}

/// Makes one or two of the options booleans, with names unlike any string's.
fn with_booleans(options: &mut [ChoiceOption], choice: usize) {
    let booleans: &[bool] = match choice {
        0 => &[true],
        1 => &[false, true],
        _ => &[],
    };
    for (place, boolean) in booleans.iter().enumerate() {
        options[place].boolean = Some(*boolean);
    }
    for (place, boolean) in booleans.iter().enumerate() {
        let strings: HashSet<&str> =
            options.iter().filter(|option| option.boolean.is_none()).map(|option| option.name.as_str()).collect();
        let mut name = boolean.to_string();
        if strings.contains(name.as_str()) {
            name.push_str(" (boolean)");
        }
        while strings.contains(name.as_str()) {
            name.push('_');
        }
        options[place].name = name;
    }
}

fn question(name: &str, instructions: Option<Json>, kind: QuestionKind) -> Question {
    // A yes-or-no question needs instructions or criteria.
    let says_nothing = matches!(&kind, QuestionKind::Noul { when_true: None, when_false: None });
    let instructions = instructions.or_else(|| says_nothing.then(|| Json::string("?")));
    Question::canonical(name, instructions, kind, "questions").unwrap()
}

/// Returns a provider input that the format can carry.
pub fn provider_input(form: Shape) -> impl Strategy<Value = ProviderInput> {
    let questions = names(form, 1..5, false).prop_flat_map(move |names| {
        let asked: Vec<_> = names
            .into_iter()
            .map(|name| {
                (prop::option::of(visible_json()), kind(form))
                    .prop_map(move |(instructions, kind)| question(&name, instructions, kind))
            })
            .collect();
        asked
    });
    (questions, visible_json())
        .prop_map(|(questions, state)| ProviderInput::new(Questions::from_typed(questions), Some(state)))
}
