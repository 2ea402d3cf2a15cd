use super::*;
use proptest::prelude::*;
use rstest::rstest;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

#[test]
fn parse_keeps_text_byte_for_byte() {
    let text = r#"{"a": 1.50, "b":[1e400 ,"\u00e9"]}"#;
    assert_eq!(json(text).text(), text);
    assert_eq!(json(&format!("\r\n\t {text} ")).text(), text);
}

#[test]
fn members_returns_order_and_duplicates() {
    let object = json(r#"{"b":1,"a":{"x":[]},"b":2}"#);
    let names: Vec<_> =
        object.members().unwrap().into_iter().map(|(name, value)| (name, value.text().to_owned())).collect();
    assert_eq!(names, [("b".into(), "1".into()), ("a".into(), r#"{"x":[]}"#.into()), ("b".into(), "2".into())]);
    assert!(json("[1]").members().is_none());
}

#[test]
fn members_decodes_names_and_rejects_lone_surrogates() {
    let names = |text: &str| json(text).members().map(|members| members.into_iter().map(|(name, _)| name).collect());
    let read: Option<Vec<String>> = names(r#"{"\u0061":1,"\ud83d\ude00":2,"\"\\\/":3,"":4}"#);
    assert_eq!(read.unwrap(), ["a", "😀", "\"\\/", ""]);
    assert_eq!(names(r#"{"a":1,"\ud83d":2}"#), None);
    assert!(names(r#"{"a":"\ud83d"}"#).is_some(), "values are not decoded");
}

#[rstest]
#[case::plain(r#""a 'b' é 😀""#, Some("a 'b' é 😀"))]
#[case::empty(r#""""#, Some(""))]
#[case::escapes(r#""a\n\"\\\u00e9\ud83d\ude00""#, Some("a\n\"\\é😀"))]
#[case::half_a_pair(r#""\ud83d""#, None)]
#[case::number("1", None)]
#[case::array(r#"["a"]"#, None)]
fn as_string_decodes_escapes(#[case] text: &str, #[case] expected: Option<&str>) {
    assert_eq!(json(text).as_string().as_deref(), expected);
}

#[rstest]
#[case("a 'b' é 😀 \u{7f}\u{2028}")]
#[case("")]
#[case("\" \\ / \n \r \t \u{8} \u{c} \u{0} \u{1f}")]
fn string_round_trips(#[case] text: &str) {
    assert_eq!(Json::string(text).text(), serde_json::to_string(text).unwrap());
    assert_eq!(Json::string(text).as_string().as_deref(), Some(text));
    let object = Json::object([(text, "1"), ("b", "[ 2]")]);
    assert_eq!(object.text(), format!("{{{}:1,\"b\":[ 2]}}", Json::string(text).text()));
    assert_eq!(object.members().unwrap()[0].0, text);
}

#[test]
fn object_and_array_of_invalid_json_are_null() {
    assert_eq!(Json::object([("a", "1}")]).text(), "null");
    assert_eq!(Json::array(["1", ""]).text(), "null");
    assert_eq!(Json::array(["1", "\"x\""]).text(), r#"[1,"x"]"#);
}

#[test]
fn part_shares_text_until_detached() {
    let whole = json(r#"{"a":[1, "b"]}"#);
    let array = whole.members().unwrap().remove(0).1;
    let element = array.elements().unwrap().remove(1);
    assert!(Arc::ptr_eq(&whole.whole, &element.whole));
    assert_eq!((array.text(), element.text()), (r#"[1, "b"]"#, r#""b""#));
    let detached = array.detached();
    assert_eq!((&*detached.whole, &detached), (r#"[1, "b"]"#, &array));
    assert_eq!(detached.elements().unwrap()[1], element);
}

#[test]
fn is_blank_detects_values_without_content() {
    for blank in ["\"\"", "\" \\n\"", "{ }", "[\n]", "null"] {
        assert!(json(blank).is_blank(), "{blank}");
    }
    for content in ["\"a\"", "[0]", "[[]]", "{\"a\":1}", "0", "false"] {
        assert!(!json(content).is_blank(), "{content}");
    }
}

#[test]
fn debug_hides_content() {
    assert!(!format!("{:?}", json(r#""private""#)).contains("private"));
    assert_eq!(format!("{:?}", json(r#"{"a":"private"}"#).members().unwrap()[0].1), "Json(a string, 9 bytes)");
}

#[test]
fn parse_rejects_invalid_json() {
    for bad in ["", "{", "NaN", "1 2", "{'a':1}", "\"\n\"", "[1,]", "{\"a\":1,}", "01"] {
        assert!(Json::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn first_duplicate_finds_duplicate_among_few_and_many() {
    for others in [0, 1, 14, 15, 16, 17, 40] {
        let others: Vec<String> = (0..others).map(|number| format!("\"m{number}\":0,")).collect();
        let repeated = |last: &str| {
            let object = json(&format!("{{{}{last}}}", others.concat()));
            let members = object.as_part().members().unwrap();
            first_duplicate(&members).map(|place| (place, members.len()))
        };
        assert_eq!(repeated(r#""a":1,"b":1"#), None);
        let (place, of) = repeated(r#""a":1,"b":2,"\u0061":3"#).unwrap();
        assert_eq!(place, of - 1);
        let (place, of) = repeated(r#""a":1,"b":2,"b":3,"a":4"#).unwrap();
        assert_eq!(place, of - 2);
    }
}

/// Parsing is linear in depth and number of members, and does not recurse.
#[test]
fn parse_of_deep_and_wide_texts_is_linear() {
    #[expect(clippy::disallowed_methods, reason = "a test measures itself")]
    let start = std::time::Instant::now();
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(500_000), close.repeat(500_000));
    assert_eq!(json(&deep("[", "]")).elements().unwrap().len(), 1);
    assert_eq!(json(&deep("{\"a\":", "}")).members().unwrap().len(), 1);
    let wide: Vec<String> = (0..200_000).map(|number| format!("\"\\u006d{number}\":[]")).collect();
    let wide = json(&format!("{{{}}}", wide.join(",")));
    let members = wide.as_part().members().unwrap();
    assert_eq!((members.len(), first_duplicate(&members)), (200_000, None));
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "quadratic, it would take minutes");
}

/// Generates JSON texts with whitespace and escapes at all allowed positions.
fn any_text() -> impl Strategy<Value = String> {
    let space = || prop::sample::select(vec!["", "", "", " ", "\n", "\t\r "]);
    let string = || {
        let piece = prop::sample::select(vec![
            "a",
            "b",
            "longer than eight bytes",
            "é",
            "😀",
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\\\"",
            "\\\\",
            "\\n",
            "\\/",
            "\\u0061",
            "\\ud83d\\ude00",
            "\\ud83d",
            "\\udc00",
            "\\u005c",
            "\\u0022",
        ]);
        prop::collection::vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
    };
    let scalar = prop::sample::select(vec!["null", "true", "false", "0", "-1.50", "1e400", "2E-7"]);
    let leaf = prop_oneof![scalar.prop_map(str::to_owned), string()];
    leaf.prop_recursive(4, 60, 6, move |inner| {
        let element =
            (space(), inner.clone(), space()).prop_map(|(before, text, after)| format!("{before}{text}{after}"));
        let member = (space(), string(), space(), element.clone())
            .prop_map(|(before, name, after, value)| format!("{before}{name}{after}:{value}"));
        prop_oneof![
            prop::collection::vec(element, 1..6).prop_map(|elements| format!("[{}]", elements.join(","))),
            prop::collection::vec(member, 1..6).prop_map(|members| format!("{{{}}}", members.join(","))),
            space().prop_map(|space| format!("[{space}]")),
            space().prop_map(|space| format!("{{{space}}}")),
        ]
    })
}

/// Returns the members as `serde_json` parses them.
fn members_by_serde(text: &str) -> Option<Vec<(String, String)>> {
    struct InOrder(Vec<(String, String)>);
    impl<'de> serde::Deserialize<'de> for InOrder {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct MembersVisitor;
            impl<'de> serde::de::Visitor<'de> for MembersVisitor {
                type Value = InOrder;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<InOrder, A::Error> {
                    let mut members = Vec::new();
                    while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                        members.push((name, value.get().to_owned()));
                    }
                    Ok(InOrder(members))
                }
            }
            deserializer.deserialize_map(MembersVisitor)
        }
    }
    serde_json::from_str::<InOrder>(text).ok().map(|members| members.0)
}

fn assert_read_alike(value: &Json) {
    let text = value.text();
    assert_eq!(value.as_string(), serde_json::from_str::<String>(text).ok(), "{text}");
    let members = value.members();
    let read = |members: &Vec<(String, Json)>| -> Vec<(String, String)> {
        members.iter().map(|(name, value)| (name.clone(), value.text().to_owned())).collect()
    };
    assert_eq!(members.as_ref().map(read), members_by_serde(text), "{text}");
    let elements = value.elements();
    let read = |elements: &Vec<Json>| -> Vec<String> { elements.iter().map(|json| json.text().to_owned()).collect() };
    let by_serde = serde_json::from_str::<Vec<&RawValue>>(text).ok();
    let by_serde = by_serde.map(|elements| elements.into_iter().map(|raw| raw.get().to_owned()).collect());
    assert_eq!(elements.as_ref().map(read), by_serde, "{text}");
    members.into_iter().flatten().for_each(|(_, value)| assert_read_alike(&value));
    elements.into_iter().flatten().for_each(|value| assert_read_alike(&value));
}

proptest! {
    #[test]
    fn parts_equal_serde_json_values(text in any_text()) {
        assert_read_alike(&json(&text));
    }
}
