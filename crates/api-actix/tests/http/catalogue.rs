//! Single models by slug, and the model count.

use api_actix::WireNames;

use super::gateway::{BASE, Caller, Setup};

#[tokio::test]
async fn model_is_readable_with_any_key_kind() {
    let gateway = Setup::new().await.start();
    for caller in [Caller::Inference, Caller::Management] {
        let reply = gateway.get(caller, "/model/acme/judge", &[]).await;
        assert_eq!(reply.status, 200);
        let data = &reply.json()["data"];
        assert_eq!(data["id"], "acme/judge");
        assert_eq!(data["pricing"]["prompt"], "0.000000042");
        assert_eq!(data["links"]["details"], "/api/v1/models/acme/judge/endpoints");
        assert_eq!(reply.header("cache-control"), Some("private, no-cache"));
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
}

#[tokio::test]
async fn model_names_are_decoded_once_and_case_insensitive() {
    let gateway = Setup::new().await.start();
    for path in ["/model/ACME/Judge", "/model/ac%6De/judge", "/model/acme/judge%3Anitro", "/model/acme/judge:floor"] {
        assert_eq!(gateway.get(Caller::Inference, path, &[]).await.json()["data"]["id"], "acme/judge", "{path}");
    }
    for path in [
        "/model/acme/nobody",
        "/model/acme/%256Audge",
        "/model/acme%2Fjudge/x",
        "/model/acme/%ff",
        "/model/acme/judge:free",
    ] {
        assert_eq!(gateway.get(Caller::Inference, path, &[]).await.expect_error(404), "Resource not found", "{path}");
    }
}

#[tokio::test]
async fn matching_etag_returns_304() {
    let gateway = Setup::new().await.start();
    for path in ["/model/acme/judge", "/models/count"] {
        let first = gateway.get(Caller::Inference, path, &[]).await;
        let etag = first.header("etag").unwrap();
        assert!(etag.starts_with('"') && etag.ends_with('"'));
        let weak = format!("\"other\", W/{etag}");
        for known in [etag, &weak, "*"] {
            let again = gateway.get(Caller::Inference, path, &[("If-None-Match", known)]).await;
            assert_eq!((again.status, again.body.len()), (304, 0), "{path} {known}");
            assert_eq!(again.header("etag"), Some(etag));
        }
        let other = gateway.get(Caller::Inference, path, &[("If-None-Match", "\"other\"")]).await;
        assert_eq!((other.status, other.body), (200, first.body));
    }
}

#[tokio::test]
async fn head_matches_get_without_body() {
    let gateway = Setup::new().await.start();
    let bearer = Caller::Inference.bearer();
    for path in ["/model/acme/judge", "/models/count"] {
        let get = gateway.get(Caller::Inference, path, &[]).await;
        let head = gateway.send("HEAD", &format!("{BASE}{path}"), &[("Authorization", &bearer)], b"").await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.header("content-length").unwrap(), get.body.len().to_string());
        assert_eq!(head.header("etag"), get.header("etag"));
    }
}

#[tokio::test]
async fn model_count_follows_modality_filter() {
    let gateway = Setup::new().await.start();
    for (query, count) in [
        ("", 1),
        ("?output_modalities=text", 1),
        ("?output_modalities=Decisions", 3),
        ("?output_modalities=decisions%2Ctext", 4),
        ("?output_modalities=all", 4),
        ("?output_modalities=image,all", 4),
        ("?output_modalities=image", 0),
        ("?output_modalities=all&q=JUD", 1),
        ("?output_modalities=all&model_authors=acme&max_price=0.042&max_output_price=1e9", 2),
        ("?output_modalities=all&providers=second", 1),
        ("?output_modalities=all&providers=third", 0),
        ("?&", 1),
    ] {
        let reply = gateway.get(Caller::Management, &format!("/models/count{query}"), &[]).await;
        assert_eq!(reply.json(), serde_json::json!({"data": {"count": count}}), "{query}");
    }
}

#[tokio::test]
async fn invalid_modality_filter_returns_400() {
    let gateway = Setup::new().await.start();
    for query in ["output_modalities=file", "output_modalities=", "output_modalities", "output_modalities=text,,image"]
    {
        let reply = gateway.get(Caller::Inference, &format!("/models/count?{query}"), &[]).await;
        assert!(reply.expect_error(400).contains("Valid values are: text, image"), "{query}");
    }
    for query in ["output_modalities=text&output_modalities=text", "output_modalities=%ff"] {
        gateway.get(Caller::Inference, &format!("/models/count?{query}"), &[]).await.expect_error(400);
    }
}

#[tokio::test]
async fn unknown_and_unsupported_filters_return_400_that_names_them() {
    let gateway = Setup::new().await.start();
    for (query, message) in [
        ("other=x", "unknown query parameter \"other\""),
        (
            "output_modality=text",
            "unknown query parameter \"output_modality\"; the nearest known query parameter is \"output_modalities\"",
        ),
        ("zdr=true", "zdr is not supported"),
        ("category=programming", "category is not supported"),
        ("q=x&supported_parameters=tools", "supported_parameters is not supported"),
        ("min_price=0", "min_price is not supported"),
        ("q=", "q must have 1 to 256 characters"),
        ("q=a&q=a", "q is in the query more than once"),
        ("context=-1", "context must be a whole number of tokens, at most 18446744073709551615"),
        ("providers=first,", "providers must be a comma-separated list of 1 to 100 elements, none of them empty"),
    ] {
        for path in ["models", "models/count"] {
            let reply = gateway.get(Caller::Inference, &format!("/{path}?{query}"), &[]).await;
            assert_eq!(reply.expect_error(400), message, "{path}?{query}");
        }
    }
    for query in ["sort=newest", "limit=3", "offset=0", "include_uncallable=true"] {
        let message = gateway.get(Caller::Inference, &format!("/models/count?{query}"), &[]).await.expect_error(400);
        assert!(message.starts_with("unknown query parameter"), "{message}");
    }
}

#[tokio::test]
async fn base_path_follows_configuration() {
    let mut setup = Setup::new().await;
    setup.settings.base_path = "/gateway/".to_owned();
    setup.settings.wire_names = WireNames::OpenRouter;
    let gateway = setup.start();
    let bearer = Caller::Inference.bearer();
    let reply = gateway.send("GET", "/gateway/model/acme/judge", &[("Authorization", &bearer)], b"").await;
    assert_eq!(reply.json()["data"]["links"]["details"], "/gateway/models/acme/judge/endpoints");
    gateway.get(Caller::Inference, "/models/count", &[]).await.expect_error(404);
}
