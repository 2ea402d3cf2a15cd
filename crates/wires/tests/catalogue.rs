//! Reading and writing catalogue rows.

use proptest::prelude::*;
use wires::catalogue::{read_row, read_rows, write_listed, write_row, write_stored};

const FULL: &str = r#"{"id":"Acme/Judge-1:free","canonical_slug":"acme/judge-1-20260901","hugging_face_id":"Acme/J","name":"Acme \"Judge\"",
 "created":1790000000,"description":"Decides.","context_length":32000,
 "architecture":{"modality":"text->decisions","input_modalities":["text"],"output_modalities":["decisions"],"tokenizer":"Other","instruct_type":null},
 "pricing":{"prompt":"0.0000000208333333333333","completion":4.5e-7,"input_cache_read":"0.00000001","overrides":[{"min_prompt_tokens":200000,"prompt":"0.1"}]},
 "top_provider":{"context_length":null,"max_completion_tokens":28800,"is_moderated":true},
 "per_request_limits":null,"supported_parameters":["seed"],"default_parameters":{"top_p":0.950},
 "links":{"details":"/elsewhere"},"reasoning":{"mandatory":false},"benchmarks":{"x":[1.0]},"renamed_from":["acme/judge"]}"#;

#[test]
fn row_keeps_all_members_and_gets_own_link() {
    let model = read_row(FULL).unwrap();
    let shown: serde_json::Value = serde_json::from_str(&write_row(&model, "/api/v1/models/x/endpoints")).unwrap();
    assert_eq!(shown["id"], "acme/judge-1:free");
    assert_eq!(shown["pricing"]["prompt"], "0.0000000208333333333333");
    assert_eq!(shown["pricing"]["completion"], "0.00000045");
    assert_eq!(shown["pricing"]["image"], "0");
    assert_eq!(shown["pricing"]["request"], "0");
    assert_eq!(shown["pricing"]["overrides"][0]["min_prompt_tokens"], 200_000);
    assert_eq!(shown["links"]["details"], "/api/v1/models/x/endpoints");
    assert_eq!(shown["hugging_face_id"], "Acme/J");
    assert_eq!(shown["top_provider"]["context_length"], serde_json::Value::Null);
    assert!(shown.get("renamed_from").is_none());
    assert!(
        write_row(&model, "").contains(r#""default_parameters":{"top_p":0.950}"#),
        "opaque members keep their bytes"
    );
    for nullable in ["expiration_date", "knowledge_cutoff", "per_request_limits", "supported_voices"] {
        assert!(shown[nullable].is_null() && shown.as_object().unwrap().contains_key(nullable), "{nullable}");
    }
}

/// A forgotten price is none of zero.
#[test]
fn prices_of_tokens_are_required() {
    for (given, name) in
        [(r#""prompt":"0.0000000208333333333333","#, "prompt"), (r#""completion":4.5e-7,"#, "completion")]
    {
        for other in [String::new(), format!("\"{name}\":null,")] {
            let fault = read_row(&FULL.replace(given, &other)).unwrap_err().to_string();
            assert!(fault.contains(&format!("pricing.{name}")) && fault.contains("is required"), "{fault}");
        }
    }
}

#[test]
fn stored_row_round_trips() {
    let model = read_row(FULL).unwrap();
    assert_eq!(read_row(&write_stored(&model)).unwrap(), model);
}

/// An import of what a list shows changes nothing; the import itself keeps the former names.
#[test]
fn listed_row_round_trips() {
    for row in [FULL, &FULL.replace(r#""tokenizer":"Other","#, ""), &FULL.replace(r#""per_request_limits":null,"#, "")]
    {
        let mut rows = read_rows(&format!("[{row}]")).unwrap();
        rows[0].renamed_from.clear();
        assert_eq!(read_rows(&format!("[{}]", write_listed(&rows[0], "/x"))).unwrap(), rows);
    }
}

#[test]
fn listed_row_is_public_row_with_owner() {
    let model = read_row(FULL).unwrap();
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let listed = write_listed(&model, "/x");
    let mut expected = parsed(&write_row(&model, "/x"));
    expected["object"] = "model".into();
    expected["owned_by"] = "acme".into();
    assert_eq!(parsed(&listed), expected);
    let alias = read_row(&FULL.replace("Acme/Judge-1:free", "~acme/judge-latest")).unwrap();
    assert_eq!(parsed(&write_listed(&alias, ""))["owned_by"], "acme");
    let again = read_row(&listed).unwrap();
    assert_eq!(again.further.len(), model.further.len() + 3, "only what every shown row has came to it");
    assert_eq!(parsed(&write_listed(&again, "/x")), parsed(&listed), "a listing can be imported and stays the same");
}

#[test]
fn unknown_tokenizer_is_named_in_public_row_only() {
    let model = read_row(&FULL.replace("\"tokenizer\":\"Other\"", "\"tokenizer\":null")).unwrap();
    let shown: serde_json::Value = serde_json::from_str(&write_row(&model, "")).unwrap();
    assert_eq!(shown["architecture"]["tokenizer"], "Other");
    assert_eq!(read_row(&write_stored(&model)).unwrap(), model);
    assert_eq!(model.architecture.tokenizer, None);
}

#[test]
fn read_rows_accepts_array_and_object() {
    assert_eq!(
        read_rows(&format!("[{FULL}]")).unwrap(),
        read_rows(&format!("{{\"total_count\":1,\"data\":[{FULL}]}}")).unwrap()
    );
    for bad in ["", "{}", "7", "{\"data\":{}}", "[1]"] {
        assert!(read_rows(bad).is_err(), "{bad}");
    }
}

#[test]
fn error_contains_row_id_and_member() {
    for (from, to, message) in [
        ("4.5e-7", "\"free\"", "row 1 (Acme/Judge-1:free): pricing.completion must be a decimal number"),
        ("\"seed\"", "7", "row 1 (Acme/Judge-1:free): supported_parameters must be an array of strings"),
        ("[\"decisions\"]", "[]", "row 1 (Acme/Judge-1:free): architecture.output_modalities must name at least one"),
        ("Acme/Judge-1:free", "judge", "row 1 (judge): id must be author/slug"),
        ("32000", "-1", "row 1 (Acme/Judge-1:free): context_length must be an integer that is not negative"),
        ("\"per_request_limits\"", "\"id\"", "row 1 (Acme/Judge-1:free): id is in the object more than once"),
    ] {
        let file = format!("[{FULL},{}]", FULL.replacen(from, to, 1));
        let fault = read_rows(&file).unwrap_err().to_string();
        assert!(fault.starts_with(message), "{fault}");
    }
    assert_eq!(read_rows("[1]").unwrap_err().to_string(), "row 0: must be an object");
}

#[test]
fn ids_with_control_characters_are_rejected() {
    for c in ["\\u001b[2J", "\\u0000", "\\n", "\u{7f}", "\u{9b}", "\u{202e}", "\u{200f}"] {
        for member in ["\"id\":\"", "\"canonical_slug\":\""] {
            let row = FULL.replacen(member, &format!("{member}acme/a{c}b\",\"was\":\""), 1);
            assert_ne!(row, FULL, "{member}");
            let fault = read_rows(&format!("[{row}]")).unwrap_err().to_string();
            assert!(fault.contains("must be author/slug"), "{c:?}: {fault}");
        }
    }
}

proptest! {
    #[test]
    fn read_never_panics_on_any_text(text in ".{0,200}") {
        let _ = read_rows(&text);
        let _ = read_row(&text);
    }

    #[test]
    fn any_name_and_description_round_trip(name in ".{0,40}", description in ".{0,80}") {
        let mut model = read_row(FULL).unwrap();
        (model.name, model.description) = (name, description);
        prop_assert_eq!(read_row(&write_stored(&model)).unwrap(), model);
    }
}
