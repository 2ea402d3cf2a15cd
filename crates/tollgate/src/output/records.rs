//! Responses of the HTTP API as text: tables of lists, and the members of a record. Values keep their spelling.

use std::fmt::Write as _;

use domain::json::{Json, JsonKind};
use domain::money::{Price, Usd};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::stdout::aligned;
use super::text::escape;

/// A column of a table: its heading, and the JSON pointer of its values.
pub type Column = (&'static str, &'static str);

/// The text of a missing value.
const NONE: &str = "-";

/// Returns the value at a JSON pointer (RFC 6901, without escapes); `None` if it does not exist.
pub fn pointer(json: &Json, at: &str) -> Option<Json> {
    at.split('/').skip(1).try_fold(json.clone(), |value, step| match value.elements() {
        Some(elements) => elements.get(step.parse::<usize>().ok()?).cloned(),
        None => value.members()?.into_iter().find(|(name, _)| name == step).map(|(_, value)| value),
    })
}

/// Returns a table of objects.
pub fn columns(elements: &[Json], columns: &[Column]) -> String {
    let row = |element: &Json| columns.iter().map(|(_, at)| cell(pointer(element, at).as_ref())).collect();
    let heads: Vec<String> = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    aligned(&heads, &elements.iter().map(row).collect::<Vec<_>>())
}

/// Returns the members of an object, one a line: lists of objects as tables, objects indented.
pub fn record(json: &Json) -> String {
    let mut text = String::new();
    write_members(&mut text, json, 0);
    text
}

fn write_members(text: &mut String, json: &Json, depth: usize) {
    let indent = "  ".repeat(depth);
    for (name, value) in json.members().unwrap_or_default() {
        let elements = value.elements().unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = if elements.first().is_some_and(|first| first.kind() == JsonKind::Object) {
            writeln!(text, "{indent}{name}:").map(|()| {
                for line in table(&elements).lines() {
                    let _ = writeln!(text, "{indent}  {line}");
                }
            })
        } else if value.kind() == JsonKind::Object {
            writeln!(text, "{indent}{name}:").map(|()| write_members(text, &value, depth + 1))
        } else {
            writeln!(text, "{indent}{name}: {}", cell(Some(&value)))
        };
    }
}

/// Returns a table with a column for each member of the first object.
fn table(elements: &[Json]) -> String {
    let members = elements.first().and_then(Json::members).unwrap_or_default();
    let names: Vec<String> = members.into_iter().map(|(name, _)| name).collect();
    let row = |element: &Json| names.iter().map(|name| cell(pointer(element, &format!("/{name}")).as_ref())).collect();
    let heads: Vec<String> = names.iter().map(|name| name.replace('_', " ").to_uppercase()).collect();
    aligned(&heads, &elements.iter().map(row).collect::<Vec<_>>())
}

/// Returns a value as the cell of a table.
fn cell(value: Option<&Json>) -> String {
    let Some(value) = value else { return NONE.to_owned() };
    match value.kind() {
        JsonKind::Null => NONE.to_owned(),
        JsonKind::Bool => if value.text() == "true" { "yes" } else { "no" }.to_owned(),
        JsonKind::String => escape(&value.as_string().unwrap_or_default()).into_owned(),
        JsonKind::Number | JsonKind::Object => value.text().to_owned(),
        JsonKind::Array => {
            let elements = value.elements().unwrap_or_default();
            let cells: Vec<String> = elements.iter().map(|element| cell(Some(element))).collect();
            if cells.is_empty() { NONE.to_owned() } else { cells.join(", ") }
        }
    }
}

/// `{"data":[…]}`
#[derive(Debug, Serialize)]
pub struct List<T> {
    /// The elements.
    pub data: Vec<T>,
}

/// An amount in USD.
#[derive(Debug, Clone, Copy)]
pub struct UsdNumber(pub Usd);

impl Serialize for UsdNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// Returns the price of a token as the cell of a table, in USD per million tokens.
pub fn per_million_tokens(price: Price) -> String {
    if price.is_variable() { "variable".to_owned() } else { price.to_usd_per_million() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = r#"{"id":"a","limit":1.50,"disabled":false,"management":{"access":"read","workspaces":["x","y"]},
        "guardrail_id":null,"budgets":[{"scope":"key_limit","spend_usd":0.000000000001},{"scope":"workspace"}]}"#;

    #[test]
    fn columns_are_values_at_pointers() {
        let key = Json::parse(KEY).unwrap();
        let shown = columns(
            &[key],
            &[
                ("ID", "/id"),
                ("LIMIT", "/limit"),
                ("OFF", "/disabled"),
                ("SCOPE", "/management/workspaces"),
                ("FIRST", "/budgets/0/scope"),
                ("NONE", "/guardrail_id"),
                ("MISSING", "/a/b"),
            ],
        );
        let lines: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split("  ").filter(|c| !c.is_empty()).collect()).collect();
        let cells: Vec<&str> = lines[1].iter().map(|cell| cell.trim()).collect();
        assert_eq!(cells, ["a", "1.50", "no", "x, y", "key_limit", "-", "-"]);
    }

    #[test]
    fn value_is_one_line() {
        let forged = Json::parse(r#"{"a":"x\r\nforged: y\u001b[2J","b":["\n"]}"#).unwrap();
        assert_eq!(record(&forged), "a: x\\u000d\\u000aforged: y\\u001b[2J\nb: \\u000a\n");
        assert_eq!(columns(&[forged], &[("A", "/a")]).lines().count(), 2);
    }

    #[test]
    fn record_has_a_line_for_each_member() {
        let shown = record(&Json::parse(KEY).unwrap());
        let expected = "id: a\nlimit: 1.50\ndisabled: no\nmanagement:\n  access: read\n  workspaces: x, y\n\
                        guardrail_id: -\nbudgets:\n  SCOPE      SPEND USD\n  key_limit  0.000000000001\n  workspace  -\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn usd_number_keeps_every_digit() {
        for text in ["0", "5", "0.000000000001", "9223372.036854775807", "-2.5"] {
            let usd: Usd = text.parse().unwrap();
            assert_eq!(serde_json::to_string(&UsdNumber(usd)).unwrap(), text);
        }
    }

    #[test]
    fn prices_in_tables_are_per_million_tokens() {
        let cell = |text: &str| per_million_tokens(text.parse().unwrap());
        assert_eq!(["0", "0.000000042", "0.00001", "-1"].map(cell), ["0", "0.042", "10", "variable"]);
    }
}
