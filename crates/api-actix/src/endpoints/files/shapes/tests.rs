use actix_web::body::to_bytes;
use actix_web::http::header::{HeaderName, HeaderValue};
use chrono::DateTime;
use domain::ids::WorkspaceId;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let mut headers = HeaderMap::new();
    pairs.iter().map(pair).for_each(|(name, value)| headers.append(name, value));
    headers
}

#[test]
fn shape_follows_client_headers() {
    let cases: [(&[(&str, &str)], FileShape); 8] = [
        (&[], FileShape::Native),
        (&[("user-agent", "curl/8")], FileShape::Native),
        (&[("user-agent", "MyOpenAI/1")], FileShape::Native),
        (&[("user-agent", "OpenAI/Python 2.1")], FileShape::VendorB),
        (&[("user-agent", "AsyncOpenAI/Python 2.1")], FileShape::VendorB),
        (&[("x-stainless-lang", "js")], FileShape::VendorB),
        (&[("x-stainless-lang", "js"), ("anthropic-version", "2023-06-01")], FileShape::VendorA),
        (&[("anthropic-version", "2023-06-01")], FileShape::VendorA),
    ];
    for (pairs, shape) in cases {
        assert_eq!(shape_for(&headers(pairs)), shape, "{pairs:?}");
    }
}

fn document() -> Document {
    Document {
        id: "tgfile_1".parse().unwrap(),
        workspace_id: WorkspaceId::from_uuid(Uuid::nil()),
        filename: "out/\"a\".png".into(),
        media_type: "image/png".into(),
        size_bytes: 48_213,
        sha256: String::new(),
        created_at: DateTime::from_timestamp_millis(1_795_252_443_512).unwrap(),
    }
}

async fn text(response: HttpResponse) -> String {
    String::from_utf8(to_bytes(response.into_body()).await.unwrap().to_vec()).unwrap()
}

async fn shown(shape: FileShape, names: WireNames) -> String {
    text(Shape::named(shape, names).file(&document())).await
}

async fn json(response: HttpResponse) -> Value {
    serde_json::from_str(&text(response).await).unwrap()
}

#[actix_web::test]
async fn each_shape_has_its_contract_members() {
    let native = concat!(
        r#""id":"tgfile_1","type":"file","filename":"out/\"a\".png","mime_type":"image/png","#,
        r#""size_bytes":48213,"created_at":"2026-11-21T09:14:03.512Z","downloadable":true}"#
    );
    assert_eq!(shown(FileShape::Native, WireNames::Interface).await, format!(r#"{{"_shape":"native",{native}"#));
    assert_eq!(shown(FileShape::VendorA, WireNames::Interface).await, format!(r#"{{"_shape":"vendor_a",{native}"#));
    assert_eq!(shown(FileShape::VendorA, WireNames::OpenRouter).await, format!(r#"{{"_shape":"anthropic",{native}"#));
    assert_eq!(
        shown(FileShape::VendorB, WireNames::Interface).await,
        concat!(
            r#"{"_shape":"vendor_b","id":"tgfile_1","object":"file","bytes":48213,"created_at":1795252443,"#,
            r#""filename":"out/\"a\".png","purpose":"assistants_output","status":"processed"}"#
        )
    );
    assert!(shown(FileShape::VendorB, WireNames::OpenRouter).await.contains(r#""_shape":"openai""#));
    assert!(shown(FileShape::Native, WireNames::OpenRouter).await.contains(r#""_shape":"openrouter""#));
}

#[actix_web::test]
async fn lists_and_deletions_have_the_members_that_clients_decode() {
    let shape = |shape| Shape::named(shape, WireNames::OpenRouter);
    let (native, vendor_a, vendor_b) = (shape(FileShape::Native), shape(FileShape::VendorA), shape(FileShape::VendorB));
    let (more, empty) = (
        DocumentList { documents: vec![document()], has_more: true },
        DocumentList { documents: Vec::new(), has_more: false },
    );
    let shown = json(native.list(&more)).await;
    assert_eq!(shown["cursor"], json!(more.cursor().unwrap()));
    assert_eq!((&shown["data"][0]["_shape"], &shown["has_more"]), (&json!("openrouter"), &json!(true)));
    assert_eq!((&shown["first_id"], &shown["last_id"]), (&json!("tgfile_1"), &json!("tgfile_1")));
    let none = json!({
        "_shape": "openrouter", "data": [], "cursor": null, "first_id": null, "last_id": null, "has_more": false
    });
    assert_eq!(json(native.list(&empty)).await, none);
    let none = json!({"_shape": "anthropic", "data": [], "first_id": null, "last_id": null, "has_more": false});
    assert_eq!(json(vendor_a.list(&empty)).await, none);
    let none = json!({
        "_shape": "openai", "object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false
    });
    assert_eq!(json(vendor_b.list(&empty)).await, none);
    let deleted = json!({"_shape": "openrouter", "id": "tgfile_1", "type": "file_deleted"});
    assert_eq!(json(native.deleted(&document())).await, deleted);
    let deleted = json!({"_shape": "openai", "id": "tgfile_1", "object": "file", "deleted": true});
    assert_eq!(json(vendor_b.deleted(&document())).await, deleted);
}

#[actix_web::test]
async fn each_shape_matches_its_schema() {
    let list = DocumentList { documents: vec![document()], has_more: true };
    for shape in [FileShape::Native, FileShape::VendorA, FileShape::VendorB] {
        for names in WireNames::ALL {
            let shape = Shape::named(shape, names);
            crate::app::assert_valid("File", &json(shape.file(&document())).await);
            crate::app::assert_valid("FileList", &json(shape.list(&list)).await);
            crate::app::assert_valid("FileDeleted", &json(shape.deleted(&document())).await);
        }
    }
}
