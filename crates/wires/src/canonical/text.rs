//! JSON and criteria as text, for wires that accept only strings, and default instructions for questions without any.

use domain::json::{Json, JsonKind};
use domain::question::{Question, QuestionKind, QuestionType};

/// Returns the content of a string, or the compact JSON of any other value.
pub fn text(json: &Json) -> String {
    json.as_string().unwrap_or_else(|| compact(json.text()))
}

/// Removes the whitespace between JSON tokens. Numbers and strings stay unchanged.
pub fn compact(json: &str) -> String {
    let mut compact = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for character in json.chars() {
        if in_string {
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else if matches!(character, ' ' | '\t' | '\n' | '\r') {
            continue;
        } else {
            in_string = character == '"';
        }
        compact.push(character);
    }
    compact
}

/// Returns the texts of input parts if all parts are text: an array of `{"type": "text" | "input_text", "text"}`, or
/// one such object.
pub fn texts_of_parts(json: &Json) -> Option<Vec<String>> {
    let parts = match json.kind() {
        JsonKind::Object => vec![json.clone()],
        _ => json.elements().filter(|elements| !elements.is_empty())?,
    };
    parts.iter().map(text_of_part).collect()
}

fn text_of_part(part: &Json) -> Option<String> {
    let members = part.members().filter(|members| members.len() == 2)?;
    let member = |name: &str| members.iter().find(|(member, _)| member == name)?.1.as_string();
    matches!(member("type")?.as_str(), "text" | "input_text").then(|| member("text")).flatten()
}

/// Returns the sentence for a question without instructions, for wires that require them.
pub fn default_instructions(question_type: QuestionType) -> &'static str {
    match question_type {
        QuestionType::Noul => "Decide whether it is so, yes or no.",
        QuestionType::Choice => "Choose the option that fits best.",
        QuestionType::Score => "Choose the level that fits best.",
        QuestionType::Box => "Find what is asked for in the image.",
    }
}

/// Returns the instructions as text, or the default sentence if there are none. Text parts become paragraphs.
pub fn instructions(question: &Question) -> String {
    match &question.instructions {
        Some(instructions) if !instructions.is_blank() => {
            texts_of_parts(instructions).map_or_else(|| text(instructions), |texts| texts.join("\n\n"))
        }
        _ => default_instructions(question.kind.question_type()).to_owned(),
    }
}

/// Returns the criteria for yes and for no as sentences, for wires without criteria on yes-or-no questions. `None` if
/// there are no criteria.
pub fn sides(kind: &QuestionKind) -> Option<String> {
    let QuestionKind::Noul { when_true, when_false } = kind else { return None };
    let side = |word: &str, side: &Option<Json>| {
        let criterion = side.as_ref().filter(|side| !side.is_blank());
        criterion.map(|side| format!("{word} means: {}", text(side)))
    };
    match (side("Yes", when_true), side("No", when_false)) {
        (Some(yes), Some(no)) => Some(format!("{yes}\n{no}")),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn text_returns_string_content_or_compact_json() {
        assert_eq!(text(&json(r#""a \"b\"\n\u00e9""#)), "a \"b\"\né");
        let given = r#"{ "a b" : [ 1.50 , "x\" , \\" ] ,"c":{ } }"#;
        assert_eq!(text(&json(given)), r#"{"a b":[1.50,"x\" , \\"],"c":{}}"#);
        assert_eq!(text(&json("1e400")), "1e400");
    }

    #[test]
    fn texts_of_parts_reads_text_parts() {
        let texts = |text: &str| texts_of_parts(&json(text));
        let both = Some(vec!["a".to_owned(), "é".to_owned()]);
        assert_eq!(texts(r#"[{"type":"text","text":"a"},{"text":"\u00e9","type":"input_text"}]"#), both);
        assert_eq!(texts(r#"{"type":"text","text":"a"}"#), Some(vec!["a".to_owned()]));
        for other in [
            "[]",
            "{}",
            r#""a""#,
            r#"[{"type":"text","text":"a"},"b"]"#,
            r#"[{"type":"text","text":7}]"#,
            r#"[{"type":"image","text":"a"}]"#,
            r#"[{"type":"text","text":"a","more":1}]"#,
        ] {
            assert_eq!(texts(other), None, "{other}");
        }
    }
}
