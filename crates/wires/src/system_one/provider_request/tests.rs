use super::*;
use domain::question::{Question, Questions};

fn provider_input(attachments: Attachments) -> ProviderInput {
    let question = Question {
        name: "a".to_owned(),
        json: Json::parse(r#"{"type":"noul", "instructions":"?"}"#).unwrap(),
        instructions: Some(Json::string("?")),
        kind: QuestionKind::Noul { when_true: None, when_false: None },
    };
    let provider_input = ProviderInput::new(Questions::from_typed(vec![question]), Some(Json::string("see pic")));
    ProviderInput { attachments, ..provider_input }
}

fn asset(name: &str, entry: &str, data: &[u8], media_type: Option<&str>) -> Asset {
    Asset {
        name: name.to_owned(),
        entry: Json::parse(entry).unwrap(),
        data: Arc::from(data),
        media_type: media_type.map(str::to_owned),
    }
}

fn written(attachments: Attachments) -> (String, Vec<u8>) {
    let payload = write(Some("m"), &provider_input(attachments), ResponseWrapper::None).unwrap();
    assert_eq!(payload.len_bytes(), payload.to_bytes().len() as u64);
    (payload.media_type().to_owned(), payload.to_bytes())
}

#[test]
fn write_sends_multipart_assets_unchanged() {
    let data = b"\x89PNG\r\n--tollgate-part-0000000000000000\r\n\xff\x00";
    let assets = vec![
        asset("pic", r#"{"type":"image","part":"asset-0"}"#, data, Some("image/png")),
        asset("inline", r#"{ "data_base64":"AA==" }"#, b"", None),
        asset("<image:1>", r#"{"type":"image","part":"asset-1"}"#, b"", None),
    ];
    let (media_type, body) = written(Attachments::Assets(assets));
    assert_eq!(media_type, "multipart/form-data; boundary=tollgate-part-0000000000000001");
    let expected = [
        &b"--tollgate-part-0000000000000001\r\n\
           Content-Disposition: form-data; name=\"request\"\r\n\
           Content-Type: application/json\r\n\r\n\
           {\"model\":\"m\",\"state\":\"see pic\",\"questions\":{\"a\":{\"type\":\"noul\", \"instructions\":\"?\"}},\
           \"assets\":{\"pic\":{\"type\":\"image\",\"part\":\"asset-0\"},\"inline\":{ \"data_base64\":\"AA==\" },\
           \"<image:1>\":{\"type\":\"image\",\"part\":\"asset-1\"}}}\r\n\
           --tollgate-part-0000000000000001\r\n\
           Content-Disposition: form-data; name=\"asset-0\"; filename=\"asset-0\"\r\n\
           Content-Type: image/png\r\n\r\n"[..],
        data,
        b"\r\n--tollgate-part-0000000000000001\r\n\
          Content-Disposition: form-data; name=\"asset-1\"; filename=\"asset-1\"\r\n\
          Content-Type: application/octet-stream\r\n\r\n\r\n\
          --tollgate-part-0000000000000001--\r\n",
    ];
    assert_eq!(String::from_utf8_lossy(&body), String::from_utf8_lossy(&expected.concat()));
    assert_eq!(body, expected.concat());
}

#[test]
fn write_keeps_inline_assets_in_json() {
    let entry = r#"{"type":"image","format":"png", "data_base64":"AA=="}"#;
    let (media_type, body) = written(Attachments::Assets(vec![asset("pic", entry, b"", None)]));
    assert_eq!(media_type, "application/json");
    let expected = r#"{"model":"m","state":"see pic","questions":{"a":{"type":"noul", "instructions":"?"}},"assets":{"pic":{"type":"image","format":"png", "data_base64":"AA=="}}}"#;
    assert_eq!(String::from_utf8(body).unwrap(), expected);
}

#[test]
fn write_keeps_images_unchanged() {
    let images = Json::parse(r#"[ "data:image/png;base64,AA==" ,{"url":1.50}]"#).unwrap();
    let (_, body) = written(Attachments::Images(images.clone()));
    assert!(String::from_utf8(body).unwrap().ends_with(&format!(r#","images":{}}}"#, images.text())));
}

#[test]
fn boundary_does_not_occur_in_content() {
    let taken: Vec<String> = (0..50).map(|n| format!("x--tollgate-part-{n:016}--")).collect();
    let taken = taken.concat();
    let odd = "--tollgate-part-99 --tollgate-part-00000000000000x0 ---tollgate-part-0000000000000051";
    let data: Arc<[u8]> = Arc::from(format!("{taken}{odd}").as_bytes());
    let part = Part { name: "a".to_owned(), media_type: "a/b", data: &data };
    assert_eq!(boundary("", std::slice::from_ref(&part)), "tollgate-part-0000000000000050");
    assert_eq!(boundary("\"--tollgate-part-0000000000000050\"", &[part]), "tollgate-part-0000000000000052");
}

#[test]
fn write_rejects_part_name_with_special_characters() {
    for name in ["a\\\"b", "a\\r\\nb", "a\\\\b", ""] {
        let entry = format!(r#"{{"part":"{name}"}}"#);
        let provider_input = provider_input(Attachments::Assets(vec![asset("pic", &entry, b"x", None)]));
        assert_eq!(
            write(None, &provider_input, ResponseWrapper::None).unwrap_err(),
            UnsupportedByWire::PartName,
            "{name}"
        );
    }
}

#[test]
fn write_rejects_media_of_another_wire() {
    assert_eq!(
        write(None, &provider_input(Attachments::InState), ResponseWrapper::None).unwrap_err(),
        UnsupportedByWire::Attachments
    );
}
