//! Media beside the state.

use super::*;
use crate::question::Asset;

fn part(name: &str, data: &str) -> AssetPart {
    AssetPart { name: name.to_owned(), media_type: Some("image/png".to_owned()), data: Arc::from(data.as_bytes()) }
}

fn with(assets: Option<&str>, parts: Vec<AssetPart>, images: Option<&str>) -> Result<Attachments, InvalidDecision> {
    let json = |text: &str| Json::parse(text).unwrap();
    let assets = assets.map(json);
    let drafted = DecisionDraft { assets, asset_parts: parts, images: images.map(json), ..draft("\"?\"", None) };
    Ok(drafted.check()?.provider_input.attachments.clone())
}

#[rstest]
#[case(None, None)]
#[case(Some("null"), Some("null"))]
#[case(Some("{}"), Some("[]"))]
fn check_returns_no_attachments_when_members_are_empty(#[case] assets: Option<&str>, #[case] images: Option<&str>) {
    assert_eq!(with(assets, Vec::new(), images).unwrap(), Attachments::None);
}

#[test]
fn images_are_kept_byte_for_byte() {
    let text = r#"[ "data:image/png;base64,AA==" ,{"url":"x"}]"#;
    let images = with(None, Vec::new(), Some(text)).unwrap();
    assert_eq!(images, Attachments::Images(Json::parse(text).unwrap()));
    assert_eq!(images.len_bytes(), text.len());
}

#[test]
fn check_assigns_parts_to_assets() {
    let assets = r#"{"cat":{"type":"image","part":"one"},"dog":{"part":"two"},"inline":{"data":"AA=="}}"#;
    let read = with(Some(assets), vec![part("two", "woof"), part("one", "meow")], None).unwrap();
    let Attachments::Assets(read) = &read else { panic!("assets") };
    let shown: Vec<(&str, &[u8], Option<&str>)> =
        read.iter().map(|asset| (asset.name.as_str(), &*asset.data, asset.media_type.as_deref())).collect();
    let png = Some("image/png");
    assert_eq!(shown, [("cat", &b"meow"[..], png), ("dog", &b"woof"[..], png), ("inline", &b""[..], None)]);
    assert_eq!(read[0].entry.text(), r#"{"type":"image","part":"one"}"#);
}

#[rstest]
#[case::no_assets(None, &["p"], None, "assets: is required if the body has more parts than the request")]
#[case::nobody_s_part(Some("{}"), &["p"], None, "assets: does not name every part of the body")]
#[case::one_part_over(Some(r#"{"a":{"part":"p"}}"#), &["p", "q"], None, "assets: does not name every part of the body")]
#[case::part_of_the_same_name(Some(r#"{"a":{"part":"p"}}"#), &["p", "p"], None, "assets: does not name every part of the body")]
#[case::no_such_part(Some(r#"{"a":{"part":"q"}}"#), &["p"], None, "assets.a.part: names no part of the body, or a part of another asset")]
#[case::part_of_another(Some(r#"{"a":{"part":"p"},"b":{"part":"p"}}"#), &["p"], None, "assets.b.part: names no part of the body, or a part of another asset")]
#[case::part_no_string(Some(r#"{"a":{"part":1}}"#), &["p"], None, "assets.a.part: must be a string")]
#[case::part_twice(Some(r#"{"a":{"part":"p","part":"q"}}"#), &["p"], None, "assets.a.part: is in the object more than once")]
#[case::no_object(Some("[]"), &[], None, "assets: must be an object that maps asset names to assets")]
#[case::asset_no_object(Some(r#"{"a":"x"}"#), &[], None, "assets.a: must be an object")]
#[case::asset_twice(Some(r#"{"a":{},"a":{}}"#), &[], None, "assets.a: is in the object more than once")]
#[case::images_no_array(None, &[], Some("{}"), "images: must be an array")]
#[case::both(Some(r#"{"a":{}}"#), &[], Some("[1]"), "images: and assets are both given; use one of them")]
fn check_rejects_ambiguous_attachments(
    #[case] assets: Option<&str>,
    #[case] parts: &[&str],
    #[case] images: Option<&str>,
    #[case] expected: &str,
) {
    let parts = parts.iter().map(|name| part(name, "x")).collect();
    assert_eq!(with(assets, parts, images).unwrap_err().to_string(), expected);
}

#[rstest]
#[case::part_and_base64(
    r#"{"part":"p","data_base64":"QQ=="}"#,
    "data_base64: is inline content, but a part is given too"
)]
#[case::part_and_escaped_name(r#"{"d\u0061ta":"QQ==","part":"p"}"#, "data: is inline content, but a part is given too")]
#[case::part_and_data_url(
    r#"{"part":"p","url":"data:image/png;base64,QQ=="}"#,
    "url: is inline content, but a part is given too"
)]
#[case::part_and_source(
    r#"{"part":"p","source":{"data":"QQ=="}}"#,
    "source: is inline content, but a part is given too"
)]
#[case::part_and_nested_url(
    r#"{"part":"p","image_url":{"url":" Data:image/png,QQ"}}"#,
    "image_url: is inline content, but a part is given too"
)]
#[case::two(r#"{"data":"QQ==","base64":"Qg=="}"#, "base64: is inline content, but other inline content is given too")]
#[case::twice(r#"{"data":"QQ==","data":"Qg=="}"#, "data: is inline content, but other inline content is given too")]
#[case::base64_and_data_url(
    r#"{"data_base64":"QQ==","url":"data:image/png;base64,Qg=="}"#,
    "url: is inline content, but other inline content is given too"
)]
#[case::base64_and_source(
    r#"{"data_base64":"QQ==","source":{"type":"base64","data":"Qg=="}}"#,
    "source: is inline content, but other inline content is given too"
)]
fn check_rejects_asset_with_two_contents(#[case] entry: &str, #[case] fault: &str) {
    let parts = if entry.contains("part") { vec![part("p", "x")] } else { Vec::new() };
    let rejected = with(Some(&format!(r#"{{"a":{entry}}}"#)), parts, None).unwrap_err();
    assert_eq!(rejected.to_string(), format!("assets.a.{fault}; an asset has one content"));
}

#[rstest]
#[case(r#"{"part":"p","data":null,"url":"https://example.org/a.png"}"#)]
#[case(r#"{"data_base64":"QQ==","media_type":"text/plain","source":{"page":1}}"#)]
#[case(r#"{"url":"data:image/png;base64,QQ=="}"#)]
fn check_accepts_asset_with_one_content(#[case] entry: &str) {
    let parts = if entry.contains("part") { vec![part("p", "x")] } else { Vec::new() };
    assert!(with(Some(&format!(r#"{{"a":{entry}}}"#)), parts, None).is_ok());
}

#[test]
fn check_rejects_media_both_in_state_and_beside_it() {
    let in_state = |images: Option<&str>| {
        let images = images.map(|text| Json::parse(text).unwrap());
        let state_form = Some(StateForm::OpenAiItems);
        DecisionDraft { media_in_state: true, images, state_form, ..draft("\"?\"", Some("[]")) }.check()
    };
    let request = in_state(None).unwrap();
    assert_eq!(request.provider_input.attachments, Attachments::InState);
    assert_eq!(request.provider_input.state_form, StateForm::OpenAiItems);
    assert_eq!(in_state(Some("[]")).unwrap().provider_input.attachments, Attachments::InState);
    assert_eq!(in_state(Some("[1]")).unwrap_err().path, "state");
}

#[test]
fn debug_of_asset_part_omits_content() {
    let asset = Asset {
        name: "private".to_owned(),
        entry: Json::string("private"),
        data: Arc::from(&b"private"[..]),
        media_type: None,
    };
    let shown = format!("{asset:?} {:?}", part("private", "private"));
    assert!(!shown.contains("private") && !shown.contains("112"), "{shown}");
}
