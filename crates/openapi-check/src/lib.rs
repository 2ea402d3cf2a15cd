//! A validator of JSON values against the schemas of an OpenAPI 3.1 document. It knows the keywords that the service's
//! document uses and reports any other keyword, so that no rule is skipped.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, NaiveDate};
use regex::Regex;
use serde_json::{Map, Value};

/// Keywords that describe a value without restricting it.
const ANNOTATIONS: [&str; 8] =
    ["contentMediaType", "default", "deprecated", "description", "discriminator", "example", "examples", "title"];

/// A document with its schemas.
#[derive(Debug)]
pub struct Schemas {
    document: Value,
    patterns: HashMap<String, Regex>,
}

/// The members that an object schema declares, with those of the schemas that it consists of.
#[derive(Default)]
struct Members<'s> {
    names: Vec<&'s str>,
    /// The schema of further members; `None` if there must be none.
    further: Option<&'s Value>,
}

impl Schemas {
    /// Reads a document and compiles its patterns.
    pub fn new(document: Value) -> Result<Self> {
        let mut patterns = HashMap::new();
        let schemas = document["components"]["schemas"].as_object().context("the document has no schemas")?;
        ensure!(!schemas.is_empty(), "the document has no schemas");
        for schema in schemas.values() {
            compile(schema, &mut patterns)?;
        }
        Ok(Self { document, patterns })
    }

    /// Returns the document.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Returns the violations of a schema by a value, each with its path.
    pub fn violations(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.check(schema, value, "", true, &mut found);
        found
    }

    /// `is_whole` is false for a part of a schema (`allOf`), which other parts complete.
    fn check(&self, schema: &Value, value: &Value, path: &str, is_whole: bool, found: &mut Vec<String>) {
        let Some(keywords) = schema.as_object() else {
            if *schema != Value::Bool(true) {
                found.push(format!("{path}: the schema is not an object: {schema}"));
            }
            return;
        };
        for (keyword, rule) in keywords {
            self.check_keyword(keyword, rule, keywords, value, path, found);
        }
        if let (true, Value::Object(members)) = (is_whole, value) {
            self.check_unknown_members(schema, members, path, found);
        }
    }

    fn check_keyword(
        &self,
        keyword: &str,
        rule: &Value,
        keywords: &Map<String, Value>,
        value: &Value,
        path: &str,
        found: &mut Vec<String>,
    ) {
        let holds = match keyword {
            "$ref" => return self.check(self.resolve(rule), value, path, false, found),
            "allOf" => return branches(rule).for_each(|part| self.check(part, value, path, false, found)),
            "oneOf" | "anyOf" => {
                let fitting = branches(rule).filter(|branch| self.violations(branch, value).is_empty()).count();
                fitting == 1 || (keyword == "anyOf" && fitting > 1)
            }
            "type" => branches(rule).any(|name| has_type(value, name)),
            "const" => value == rule,
            "enum" => branches(rule).any(|allowed| allowed == value),
            "format" => has_format(value, rule),
            "pattern" => self.matches(value, rule),
            "minLength" => length(value).is_none_or(|length| at_least(length, rule)),
            "maxLength" => length(value).is_none_or(|length| at_most(length, rule)),
            "minItems" => value.as_array().is_none_or(|items| at_least(items.len(), rule)),
            "maxItems" => value.as_array().is_none_or(|items| at_most(items.len(), rule)),
            "minimum" => value.as_f64().is_none_or(|number| Some(number) >= rule.as_f64()),
            "maximum" => value.as_f64().is_none_or(|number| Some(number) <= rule.as_f64()),
            "exclusiveMinimum" => value.as_f64().is_none_or(|number| Some(number) > rule.as_f64()),
            "required" => {
                let lacks = |name: &&Value| value.is_object() && value.get(name.as_str().unwrap_or_default()).is_none();
                let missing: Vec<&Value> = branches(rule).filter(lacks).collect();
                found.extend(missing.iter().map(|name| format!("{path}: {name} is missing")));
                return;
            }
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                return items.for_each(|(at, item)| self.check(rule, item, &format!("{path}[{at}]"), true, found));
            }
            "properties" => {
                let described = rule.as_object().into_iter().flatten();
                return described.filter_map(|(name, schema)| Some((name, schema, value.get(name)?))).for_each(
                    |(name, schema, value)| self.check(schema, value, &format!("{path}.{name}"), true, found),
                );
            }
            "additionalProperties" => {
                let known = keywords.get("properties");
                let further = value.as_object().into_iter().flatten();
                return further
                    .filter(|(name, _)| {
                        *rule != Value::Bool(false) && known.is_none_or(|known| known.get(name).is_none())
                    })
                    .for_each(|(name, value)| self.check(rule, value, &format!("{path}.{name}"), true, found));
            }
            "propertyNames" => {
                let names = value.as_object().into_iter().flat_map(Map::keys);
                return names.for_each(|name| self.check(rule, &Value::from(name.as_str()), path, true, found));
            }
            annotation => ANNOTATIONS.contains(&annotation),
        };
        if !holds {
            found.push(format!("{path}: {value} violates {keyword} {rule}"));
        }
    }

    /// An object schema with members is closed unless it says otherwise: a member without a description is an error of
    /// the document.
    fn check_unknown_members(&self, schema: &Value, members: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
        let mut declared = Members::default();
        self.collect_members(schema, &mut declared);
        if declared.names.is_empty() || declared.further.is_some() {
            return;
        }
        let unknown = members.keys().filter(|name| !declared.names.contains(&name.as_str()));
        found.extend(unknown.map(|name| format!("{path}: the member {name} is not described")));
    }

    fn collect_members<'s>(&'s self, schema: &'s Value, declared: &mut Members<'s>) {
        if let Some(reference) = schema.get("$ref") {
            self.collect_members(self.resolve(reference), declared);
        }
        schema.get("allOf").into_iter().flat_map(branches).for_each(|part| self.collect_members(part, declared));
        declared.names.extend(schema["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str));
        let further = schema.get("additionalProperties").filter(|further| **further != Value::Bool(false));
        declared.further = declared.further.or(further);
    }

    fn resolve(&self, reference: &Value) -> &Value {
        let pointer = reference.as_str().unwrap_or_default().trim_start_matches('#');
        self.document.pointer(pointer).unwrap_or(&Value::Null)
    }

    fn matches(&self, value: &Value, pattern: &Value) -> bool {
        let Some(text) = value.as_str() else { return true };
        self.patterns.get(pattern.as_str().unwrap_or_default()).is_some_and(|pattern| pattern.is_match(text))
    }
}

/// Returns the elements of an array, or the value itself.
fn branches(rule: &Value) -> impl Iterator<Item = &Value> {
    rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice).iter()
}

fn compile(schema: &Value, patterns: &mut HashMap<String, Regex>) -> Result<()> {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("pattern", Value::String(pattern)) => drop(patterns.insert(pattern.clone(), Regex::new(pattern)?)),
                    _ => compile(value, patterns)?,
                }
            }
            Ok(())
        }
        Value::Array(elements) => elements.iter().try_for_each(|element| compile(element, patterns)),
        _ => Ok(()),
    }
}

fn has_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn has_format(value: &Value, format: &Value) -> bool {
    match (format.as_str().unwrap_or_default(), value) {
        ("date-time", Value::String(text)) => DateTime::parse_from_rfc3339(text).is_ok(),
        ("date", Value::String(text)) => NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok(),
        ("uuid", Value::String(text)) => is_uuid(text),
        ("int32", Value::Number(number)) => number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        ("int64", Value::Number(number)) => number.is_i64() || number.is_u64(),
        ("date-time" | "date" | "uuid" | "int32" | "int64" | "double", _) => true,
        _ => false,
    }
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Returns the characters of a string.
fn length(value: &Value) -> Option<usize> {
    value.as_str().map(|text| text.chars().count())
}

fn at_least(length: usize, rule: &Value) -> bool {
    rule.as_u64().is_some_and(|least| length as u64 >= least)
}

fn at_most(length: usize, rule: &Value) -> bool {
    rule.as_u64().is_some_and(|most| length as u64 <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn violations(schema: &Value, value: &Value) -> Vec<String> {
        let named = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let document = json!({"components": {"schemas": {"Named": named, "Tried": schema}}});
        Schemas::new(document).unwrap().violations(schema, value)
    }

    #[test]
    fn every_keyword_accepts_and_rejects() {
        let named = json!({"$ref": "#/components/schemas/Named"});
        for (schema, good, bad) in [
            (json!({"type": "integer"}), json!(1), json!(1.5)),
            (json!({"type": ["string", "null"]}), json!(null), json!(1)),
            (json!({"type": "object"}), json!({"any": 1}), json!([])),
            (json!({"enum": ["a", "b"]}), json!("b"), json!("c")),
            (json!({"const": "a"}), json!("a"), json!("b")),
            (json!({"pattern": "^a+$"}), json!("aa"), json!("ab")),
            (json!({"minLength": 2}), json!("éé"), json!("é")),
            (json!({"maxLength": 1}), json!("é"), json!("éé")),
            (json!({"minimum": 1, "maximum": 2}), json!(2), json!(2.5)),
            (json!({"exclusiveMinimum": 0.0}), json!(0.1), json!(0)),
            (json!({"minItems": 1}), json!([1]), json!([])),
            (json!({"maxItems": 1}), json!([1]), json!([1, 2])),
            (json!({"items": {"type": "string"}}), json!(["a"]), json!(["a", 1])),
            (json!({"type": "string", "format": "date-time"}), json!("2026-11-23T10:00:00.1Z"), json!("2026-11-23")),
            (json!({"format": "date"}), json!("2026-11-23"), json!("23.11.2026")),
            (json!({"format": "uuid"}), json!("01a20768-650d-75e2-8044-a1b2888b4ec7"), json!("01a20768")),
            (json!({"format": "int32"}), json!(1), json!(5_000_000_000_u64)),
            (json!({"properties": {"a": {"type": "null"}}}), json!({"a": null}), json!({"a": 1})),
            (json!({"properties": {"a": {}}}), json!({}), json!({"b": 1})),
            (json!({"additionalProperties": {"type": "string"}}), json!({"a": "b"}), json!({"a": 1})),
            (json!({"propertyNames": {"minLength": 2}}), json!({"ab": 1}), json!({"a": 1})),
            (named.clone(), json!({"n": 1}), json!({})),
            (named.clone(), json!({"n": 1}), json!({"n": 1, "further": 2})),
            (json!({"oneOf": [{"type": "null"}, named]}), json!(null), json!({"n": "1"})),
            (json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}), json!(1.5), json!(1)),
            (json!({"anyOf": [{"type": "integer"}, {"type": "number"}]}), json!(1), json!("1")),
        ] {
            assert_eq!(violations(&schema, &good), [""; 0], "{schema}");
            assert_ne!(violations(&schema, &bad), [""; 0], "{schema} accepts {bad}");
        }
    }

    #[test]
    fn parts_of_a_schema_complete_each_other() {
        let schema = json!({"allOf": [
            {"$ref": "#/components/schemas/Named"},
            {"type": "object", "properties": {"o": {"type": "string"}}, "required": ["o"]},
        ]});
        assert_eq!(violations(&schema, &json!({"n": 1, "o": ""})), [""; 0]);
        assert_eq!(violations(&schema, &json!({"n": 1})), [": \"o\" is missing"]);
        assert_eq!(violations(&schema, &json!({"n": 1, "o": "", "p": 1})), [": the member p is not described"]);
        let open = json!({"properties": {"a": {}}, "additionalProperties": true});
        assert_eq!(violations(&open, &json!({"b": 1})), [""; 0]);
    }

    #[test]
    fn unknown_keyword_is_reported() {
        assert_eq!(violations(&json!({"multipleOf": 2}), &json!(4)), [": 4 violates multipleOf 2"]);
        assert_eq!(violations(&json!({"format": "ipv4"}), &json!("x")).len(), 1);
    }
}
