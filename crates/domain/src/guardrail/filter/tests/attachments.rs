//! Images, text assets and other media beside or inside the state.

use super::*;
use crate::question::{Asset, Attachments, StateForm};
use FilterAction::{Block, Flag, Redact};
use rstest::rstest;

fn with(attachments: Attachments, state: &str, form: StateForm) -> Arc<ProviderInput> {
    let mut asked = ProviderInput::clone(&provider_input(state, ASKED));
    (asked.attachments, asked.state_form) = (attachments, form);
    Arc::new(asked)
}

fn asset(name: &str, entry: &str, data: &str, media_type: Option<&str>) -> Asset {
    Asset {
        name: name.to_owned(),
        entry: Json::parse(entry).unwrap(),
        data: data.as_bytes().into(),
        media_type: media_type.map(str::to_owned),
    }
}

fn assets(assets: Vec<Asset>) -> Arc<ProviderInput> {
    with(Attachments::Assets(assets), "\"s\"", StateForm::Plain)
}

const GEMINI: &str = r#"[{"type":"text","text":"look"},{"type":"image","data":"eA=="}]"#;
const OPENAI: &str =
    r#"[{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"x"}]}]"#;

fn unreadable() -> [(Arc<ProviderInput>, &'static str); 7] {
    let images = Attachments::Images(Json::parse(r#"["data:image/png;base64,eA=="]"#).unwrap());
    [
        (with(images, "\"s\"", StateForm::Plain), "images"),
        (with(Attachments::InState, GEMINI, StateForm::GeminiParts), "state[1]"),
        (with(Attachments::InState, OPENAI, StateForm::OpenAiItems), "state[0].content[1]"),
        (with(Attachments::InState, "[]", StateForm::OpenAiItems), "state"),
        (assets(vec![asset("a", r#"{"type":"image","part":"p"}"#, "x", Some("image/png"))]), "assets.(key 1)"),
        (assets(vec![asset("a", r#"{"type":"image","data_base64":"eA=="}"#, "", None)]), "assets.(key 1)"),
        (assets(vec![asset("a", r#"{"part":"p"}"#, "text", None)]), "assets.(key 1)"),
    ]
}

#[test]
fn unreadable_attachment_is_blocked_when_a_filter_blocks_or_redacts() {
    for action in [Block, Redact] {
        let filters = super::filters(&[(BuiltinFilter::Ssn, Flag), (BuiltinFilter::Email, action)], &[]);
        for (provider_input, path) in unreadable() {
            let blocked = filters.apply(&provider_input).unwrap_err();
            let expected = Blocked {
                guardrail_id: id(1),
                label: UNREADABLE_ATTACHMENT.to_owned(),
                path: path.to_owned(),
                is_too_large: false,
            };
            assert_eq!(blocked, expected);
        }
    }
}

#[test]
fn unreadable_attachment_is_flagged_when_filters_only_flag() {
    for (provider_input, path) in unreadable() {
        let filtered = filters(&[(BuiltinFilter::Ssn, Flag)], &[]).apply(&provider_input).unwrap();
        assert!(Arc::ptr_eq(&provider_input, &filtered.provider_input));
        let [finding] = &filtered.findings[..] else { panic!("{:?}", filtered.findings) };
        assert_eq!((finding.label.as_str(), finding.path.as_str()), (UNREADABLE_ATTACHMENT, path));
        assert_eq!((finding.action, finding.count, finding.guardrail_id), (Flag, 1, id(1)));
    }
}

#[test]
fn attachments_pass_without_filters() {
    let none = CompiledFilters::compile(std::iter::empty()).unwrap();
    for (provider_input, _) in unreadable() {
        assert!(Arc::ptr_eq(&provider_input, &none.apply(&provider_input).unwrap().provider_input));
    }
}

#[test]
fn block_reports_first_of_match_and_attachment() {
    let filters = all(Block);
    let path = |state: &str| {
        let asked = with(Attachments::InState, state, StateForm::GeminiParts);
        let blocked = filters.apply(&asked).unwrap_err();
        (blocked.label, blocked.path)
    };
    let text = r#"{"type":"text","text":"x@example.com"}"#;
    let image = r#"{"type":"image","data":"eA=="}"#;
    assert_eq!(path(&format!("[{text},{image}]")), ("EMAIL".to_owned(), "state[0].text".to_owned()));
    assert_eq!(path(&format!("[{image},{text}]")), (UNREADABLE_ATTACHMENT.to_owned(), "state[0]".to_owned()));
}

#[rstest]
#[case::plain("text/plain", "mail x@example.com", "mail [EMAIL]")]
#[case::with_charset("Text/CSV; charset=utf-8", "a,x@example.com\n", "a,[EMAIL]\n")]
#[case::json("application/json", r#"{"a\u0040b.cc":[1]}"#, r#"{"[EMAIL]":[1]}"#)]
#[case::json_by_suffix("application/vnd.x+json", r#"["a\u0040b.cc"]"#, r#"["[EMAIL]"]"#)]
#[case::no_json_after_all("application/json", "{x@example.com", "{[EMAIL]")]
#[case::backslashes("text/plain", r"c:\new\x@example.com", r"c:\new\[EMAIL]")]
fn text_assets_are_scanned_and_redacted(#[case] media_type: &str, #[case] data: &str, #[case] expected: &str) {
    let asked = assets(vec![asset("doc", r#"{"part":"p","note":"x@example.com"}"#, data, Some(media_type))]);
    let filtered = all(Redact).apply(&asked).unwrap();
    let Attachments::Assets(sent) = &filtered.provider_input.attachments else { panic!("no assets") };
    assert_eq!(std::str::from_utf8(&sent[0].data).unwrap(), expected);
    assert_eq!(sent[0].entry.text(), r#"{"part":"p","note":"[EMAIL]"}"#);
    assert_eq!((sent[0].name.as_str(), sent[0].media_type.as_deref()), ("doc", Some(media_type)));
    let blocked = all(Block).apply(&assets(vec![asset("doc", r#"{"part":"p"}"#, data, Some(media_type))])).unwrap_err();
    assert!(blocked.path.starts_with("assets.(key 1)"), "{}", blocked.path);
}

#[test]
fn inline_text_assets_are_scanned_and_redacted() {
    // "mail x@example.com", and its redacted form.
    let entry = r#"{"media_type":"text/plain","data":"bWFpbCB4QGV4YW1wbGUuY29t","note":"x@example.com"}"#;
    let filtered = all(Redact).apply(&assets(vec![asset("doc", entry, "", None)])).unwrap();
    let Attachments::Assets(sent) = &filtered.provider_input.attachments else { panic!("no assets") };
    let expected = r#"{"media_type":"text/plain","data":"bWFpbCBbRU1BSUxd","note":"[EMAIL]"}"#;
    assert_eq!(sent[0].entry.text(), expected);
}

#[test]
fn asset_is_unreadable_when_it_is_not_utf_8() {
    let mut latin = asset("a", r#"{"part":"p"}"#, "x", Some("text/plain"));
    latin.data = vec![0xe9, b'x'].into();
    assert_eq!(all(Redact).apply(&assets(vec![latin])).unwrap_err().label, UNREADABLE_ATTACHMENT);
}

#[test]
fn match_in_asset_name_blocks() {
    let clean = |name: &str| assets(vec![asset(name, r#"{"part":"p"}"#, "text", Some("text/plain"))]);
    assert!(all(Redact).apply(&clean("doc")).is_ok());
    for action in [Block, Redact] {
        let blocked = all(action).apply(&clean("x@example.com")).unwrap_err();
        assert_eq!((blocked.label.as_str(), blocked.path.as_str()), ("EMAIL", "assets (key)"));
    }
}

#[test]
fn text_items_and_parts_are_redacted() {
    let state = r#"[{"type":"text","text":"x@example.com"}]"#;
    let filtered = all(Redact).apply(&with(Attachments::None, state, StateForm::GeminiParts)).unwrap();
    assert_eq!(filtered.provider_input.state.as_ref().unwrap().text(), r#"[{"type":"text","text":"[EMAIL]"}]"#);
    assert_eq!(filtered.provider_input.state_form, StateForm::GeminiParts);
}

#[rstest]
#[case::parameter("text/plain; name=alice@example.com")]
#[case::subtype("text/x-alice@example.com")]
fn match_in_media_type_blocks(#[case] media_type: &str) {
    for action in [Block, Redact] {
        let asked = assets(vec![asset("a", r#"{"part":"p"}"#, "hello", Some(media_type))]);
        let blocked = filters(&[(BuiltinFilter::Email, action)], &[]).apply(&asked).unwrap_err();
        assert_eq!((blocked.label.as_str(), blocked.path.as_str()), ("EMAIL", "assets.(key 1)"));
    }
}

#[rstest]
#[case("text/plain; charset=utf-7", false)]
#[case("text/plain; Charset=\"ISO-2022-JP\"", false)]
#[case("application/json;charset=utf-16le", false)]
#[case("text/plain; charset=UTF-8; format=flowed", true)]
#[case("text/plain; charset=us-ascii", true)]
fn asset_is_unreadable_in_another_character_set(#[case] media_type: &str, #[case] is_read: bool) {
    let asked = assets(vec![asset("a", r#"{"part":"p"}"#, "alice+AEA-example.com", Some(media_type))]);
    let filtered = filters(&[(BuiltinFilter::Email, Block)], &[]).apply(&asked);
    let label = filtered.err().map(|blocked| blocked.label);
    assert_eq!(label, (!is_read).then(|| UNREADABLE_ATTACHMENT.to_owned()));
}

#[rstest]
#[case::remote_url(r#"{"media_type":"text/plain","data":"aGk=","url":"https://example.org/a.png"}"#)]
#[case::data_url(r#"{"media_type":"text/plain","data_base64":"aGk=","url":"data:image/png;base64,eA=="}"#)]
#[case::source(r#"{"media_type":"text/plain","data_base64":"aGk=","source":{"data":"eA=="}}"#)]
#[case::unknown_member(r#"{"media_type":"text/plain","data":"aGk=","blob":"eA=="}"#)]
#[case::unknown_list(r#"{"media_type":"text/plain","data":"aGk=","pages":["eA=="]}"#)]
#[case::escaped_member(r#"{"media_type":"text/plain","data":"aGk=","u\u0072l":"https://example.org/a.png"}"#)]
#[case::data_url_as_title(r#"{"media_type":"text/plain","data":"aGk=","title":"data:image/png;base64,eA=="}"#)]
#[case::other_media_type(r#"{"media_type":"text/plain","data":"aGk=","mime_type":"image/png"}"#)]
#[case::other_character_set(r#"{"media_type":"text/plain","data":"aGk=","content_type":"text/plain; charset=utf-16"}"#)]
#[case::media_type_twice(r#"{"media_type":"text/plain","data":"aGk=","media_type":"image/png"}"#)]
#[case::media_type_number(r#"{"media_type":"text/plain","data":"aGk=","mime_type":7}"#)]
#[case::two_contents(r#"{"media_type":"text/plain","data":"aGk=","base64":"eA=="}"#)]
#[case::content_number(r#"{"media_type":"text/plain","data":"aGk=","base64":7}"#)]
#[case::part_with_content(r#"{"part":"p","media_type":"text/plain","data_base64":"eA=="}"#)]
#[case::part_with_url(r#"{"part":"p","media_type":"text/plain","url":"https://example.org/a.png"}"#)]
fn asset_is_unreadable_when_it_has_more_than_text(#[case] entry: &str) {
    let part = if entry.contains("part") { "hello" } else { "" };
    for action in [Block, Redact] {
        let filters = filters(&[(BuiltinFilter::Email, action)], &[]);
        let blocked = filters.apply(&assets(vec![asset("a", entry, part, None)])).unwrap_err();
        assert_eq!((blocked.label.as_str(), blocked.path.as_str()), (UNREADABLE_ATTACHMENT, "assets.(key 1)"));
    }
}

#[rstest]
#[case(r#"{"type":"text","media_type":"text/plain","name":"a.txt","page":1,"data_base64":"aGk=","base64":null}"#, "")]
#[case(r#"{"type":"text","part":"p","media_type":"text/plain","note":"https://example.org"}"#, "hello")]
#[case(r#"{"part":"p","media_type":"text/plain"}"#, "")]
fn asset_is_readable_when_other_members_describe_it(#[case] entry: &str, #[case] part: &str) {
    assert!(all(Block).apply(&assets(vec![asset("a", entry, part, None)])).is_ok());
}

#[rstest]
#[case::data_url(r#"{"photo":"data:image/png;base64,eA=="}"#, "state.photo")]
#[case::data_url_alone(r#"["x","data:;base64,eA=="]"#, "state[1]")]
#[case::escaped(r#"[{"photo":"d\u0061ta:image/png;base64,eA=="}]"#, "state[0].photo")]
#[case::image_url(r#"["look",{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]"#, "state[1]")]
#[case::escaped_type(r#"["look",{"t\u0079pe":"imag\u0065_url","image_url":{"url":"x"}}]"#, "state[1]")]
#[case::nested_url(r#"[{"a":{"url":"data:image/png;base64,eA=="}}]"#, "state[0].a.url")]
fn medium_in_plain_state_is_unreadable(#[case] state: &str, #[case] path: &str) {
    let blocked = all(Redact).apply(&provider_input(state, ASKED)).unwrap_err();
    assert_eq!((blocked.label.as_str(), blocked.path.as_str()), (UNREADABLE_ATTACHMENT, path));
    let flagged = all(Flag).apply(&provider_input(state, ASKED)).unwrap().findings;
    assert_eq!(flagged[0].label, UNREADABLE_ATTACHMENT);
}

#[rstest]
#[case(r#"{"type":"image","title":"a picture"}"#)]
#[case(r#"{"type":"document","url":"https://example.org/a"}"#)]
#[case(r#""data: one, two and three""#)]
#[case(r#"{"html":"<img src='data:image/png;base64,eA=='>"}"#)]
fn plain_state_is_readable_when_it_mentions_media(#[case] state: &str) {
    assert!(all(Block).apply(&provider_input(state, ASKED)).is_ok());
}

#[rstest]
#[case::gemini_data(StateForm::GeminiParts, r#"[{"type":"text","text":"a","data":"eA=="}]"#, "state[0]")]
#[case::gemini_unknown(
    StateForm::GeminiParts,
    r#"[{"type":"text","text":"a"},{"type":"text","text":"a","inline_data":{"data":"eA=="}}]"#,
    "state[1]"
)]
#[case::openai_part(
    StateForm::OpenAiItems,
    r#"[{"role":"user","content":[{"type":"input_text","text":"a","image_url":"x"}]}]"#,
    "state[0].content[0]"
)]
#[case::openai_item(StateForm::OpenAiItems, r#"[{"role":"user","content":"a","attachment":"eA=="}]"#, "state[0]")]
#[case::openai_data(
    StateForm::OpenAiItems,
    r#"[{"role":"user","content":[{"type":"input_text","text":"a","data":"eA=="}]}]"#,
    "state[0].content[0]"
)]
fn text_part_is_unreadable_when_it_has_unknown_members(
    #[case] form: StateForm,
    #[case] state: &str,
    #[case] path: &str,
) {
    let blocked = all(Block).apply(&with(Attachments::None, state, form)).unwrap_err();
    assert_eq!((blocked.label.as_str(), blocked.path.as_str()), (UNREADABLE_ATTACHMENT, path));
}

#[test]
fn text_conversation_is_readable() {
    let state = r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},
        {"type":"input_json","data":{"type":"document","url":"x","data":"y"}},{"type":"input_json","data":[{"data":"z"}]}]},
        {"type":"function_call","name":"f","call_id":"c","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"b"}]},
        {"role":"assistant","id":"m","status":"completed","content":[{"type":"output_text","text":"c","annotations":[],"logprobs":[]}]}]"#;
    assert!(all(Block).apply(&with(Attachments::None, state, StateForm::OpenAiItems)).is_ok());
}

#[test]
fn unreadable_attachment_path_hides_matched_names() {
    let filters = filters(&[(BuiltinFilter::Email, Redact)], &[("hunter2", Redact, Some("X"))]);
    let image = r#"{"type":"image_url","image_url":"x"}"#;
    let blocked = filters.apply(&provider_input(&format!(r#"{{"a":{{"hunter2":[{image}]}}}}"#), ASKED)).unwrap_err();
    assert_eq!((blocked.label.as_str(), blocked.path.as_str()), (UNREADABLE_ATTACHMENT, "state.a.(key 1)[0]"));
}
