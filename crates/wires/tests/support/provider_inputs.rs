//! Random provider inputs.

use std::sync::Arc;

use domain::question::ProviderInput;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Random text without line breaks, sometimes blank.
pub fn text() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => "[a-z\"\\\\é\\n ]{0,6}".prop_map(Value::from),
        1 => prop::collection::vec("[a-z]{0,3}", 0..3).prop_map(|words| json!(words)),
        1 => ("[a-z]{0,3}", any::<f64>()).prop_map(|(word, number)| json!({ word: [number, null, {"a\"": true}] })),
    ]
}

fn question() -> impl Strategy<Value = Value> {
    let noul = (text(), prop::option::of(text()), prop::option::of(text())).prop_map(
        |(ask, yes, no)| json!({"type": "noul", "instructions": ask, "criteria": {"true": yes, "false": no}}),
    );
    let options = prop::collection::btree_map("[a-zA-Zé\"_]{1,6}", prop::option::of(text()), 1..30);
    let choice = (prop::option::of(text()), options)
        .prop_map(|(ask, options)| json!({"type": "choice", "instructions": ask, "criteria": options}));
    let score = (prop::option::of(text()), prop::collection::vec(text(), 1..11))
        .prop_map(|(ask, levels)| json!({"type": "score", "instructions": ask, "criteria": levels}));
    prop_oneof![noul, choice, score]
}

pub fn provider_input() -> impl Strategy<Value = Arc<ProviderInput>> {
    let state = text();
    (prop::collection::btree_map("[a-zA-Z_\"é]{0,6}", question(), 1..6), state).prop_map(|(questions, state)| {
        let body = json!({"model": "m", "state": state, "questions": questions});
        super::provider_input(&body.to_string())
    })
}
