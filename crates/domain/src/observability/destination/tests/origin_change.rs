//! Stored secrets and changed origins.

use super::*;

fn to(url: &str) -> DestinationFields {
    DestinationFields { url: Some(url.to_owned()), ..DestinationFields::default() }
}

/// Creates a destination with a query, two headers and a secret.
async fn made(fixture: &Fixture) -> Destination {
    let headers = headers([("X-Key", "h1dden"), ("authorization", "Bearer t0psecret")]);
    fixture.create(&DestinationFields { headers: Some(headers), ..webhook() }).await.unwrap()
}

#[tokio::test]
async fn update_requires_secrets_when_origin_changes() {
    let fixture = Fixture::new().await;
    let made = made(&fixture).await;
    let entries = fixture.store.audit_log().newest(100).await.unwrap().len();
    let all = "config.headers.authorization, config.headers.x-key, config.secret";
    let elsewhere = "https://attacker.example/in";
    let replacement = |headers: &[(&str, &str)], secret: Option<&str>| DestinationFields {
        headers: Some(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()),
        secret: secret.map_or(Edit::Keep, |secret| Edit::Set(secret.to_owned())),
        ..to(elsewhere)
    };
    let masked = format!("https://attacker.example/in?{MASK}");
    let with_query = format!("the query of config.url, {all}");
    for (fields, named) in [
        (to(elsewhere), all),
        (to("http://example.org/in?token=t0ken"), all),
        (to("https://example.org:444/in"), all),
        (to("https://example.org./in"), all),
        (to("https://sub.example.org/in"), all),
        (to("https://example.org.attacker.example/in"), all),
        (to("https://attacker.example/?https://example.org/in"), all),
        (to(&masked), with_query.as_str()),
        (DestinationFields { secret: Edit::Set(MASK.to_owned()), ..to(elsewhere) }, all),
        (
            DestinationFields { secret: Edit::Set(SECRET.to_owned()), ..to(elsewhere) },
            "config.headers.authorization, config.headers.x-key",
        ),
        (replacement(&[("X-KEY", " ******** ")], Some("another secret, long enough")), "config.headers.x-key"),
        (
            replacement(&[("x-key", "new"), ("Authorization", MASK)], Some(MASK)),
            "config.headers.authorization, config.secret",
        ),
        (replacement(&[("x-key", "new"), ("x-more", "new")], None), "config.secret"),
        (replacement(&[], None), "config.secret"),
    ] {
        let sentence = fault(fixture.update(&made, &fields).await);
        let expected = "config.url has another scheme, host or port, to which stored secrets are not sent; include in the same request: ";
        assert_eq!(sentence, format!("{expected}{named}"));
    }
    assert_eq!(fixture.calls(), 1, "only the test delivery of its creation");
    assert_eq!(fixture.store.audit_log().newest(100).await.unwrap().len(), entries, "nothing is noted as done");
    assert_eq!(fixture.store.destinations().find(made.id).await.unwrap(), Some(made));
}

#[tokio::test]
async fn update_moves_repeated_secrets_and_drops_others() {
    let fixture = Fixture::new().await;
    let made = made(&fixture).await;
    let fields = DestinationFields {
        headers: Some(headers([("X-Key", "an0ther")])),
        secret: Edit::Set("another secret, long enough".to_owned()),
        ..to("https://new.example/in?token=n3w")
    };
    let moved = fixture.update(&made, &fields).await.unwrap();
    assert_eq!(moved.headers, [("x-key".to_owned(), SecretString::new("an0ther"))]);
    assert_eq!(moved.signing_secret, Some(SecretString::new("another secret, long enough")));
    assert_eq!(
        fixture.receiver.called.lock().unwrap().last().map(|called| called.url.clone()),
        Some(moved.url.clone())
    );
    // A caller who knows the stored secrets may repeat them.
    let back = DestinationFields { secret: Edit::Set(SECRET.to_owned()), headers: Some(Vec::new()), ..to(&made.url) };
    let back = fixture.update(&moved, &back).await.unwrap();
    assert_eq!((back.headers.len(), back.signing_secret), (0, made.signing_secret));
}

#[tokio::test]
async fn update_keeps_secrets_within_origin() {
    let fixture = Fixture::new().await;
    let made = made(&fixture).await;
    for (url, expected) in [
        ("https://example.org/other", "https://example.org/other"),
        ("HTTPS://EXAMPLE.ORG:443/in?a=b", "HTTPS://EXAMPLE.ORG:443/in?a=b"),
        ("https://example.org:00443?a=b", "https://example.org:00443?a=b"),
        ("https://example.org/new?********", "https://example.org/new?a=b"),
        ("https://example.org?********", "https://example.org?a=b"),
    ] {
        let changed = fixture.update(&made, &to(url)).await.unwrap();
        assert_eq!(changed.url, expected);
        assert_eq!((changed.headers, changed.signing_secret), (made.headers.clone(), made.signing_secret.clone()));
    }
}

#[tokio::test]
async fn update_moves_destination_without_secrets() {
    let fixture = Fixture::new().await;
    let plain = DestinationFields {
        kind: Some("otel-collector".to_owned()),
        headers: None,
        secret: Edit::Keep,
        url: Some("http://[2001:DB8::1]:4318".to_owned()),
        ..webhook()
    };
    let made = fixture.create(&plain).await.unwrap();
    assert_eq!(fixture.update(&made, &to("http://other")).await.unwrap().url, "http://other");
}

#[tokio::test]
async fn masked_query_is_replaced_by_stored_query() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&DestinationFields { url: Some("https://h/in".to_owned()), ..webhook() }).await.unwrap();
    for (url, expected) in [
        ("https://h/in?********", "config.url has a masked query, but no query is stored"),
        ("https://h/other?********", "config.url has a masked query, but no query is stored"),
        ("https://elsewhere/?********", "config.url has a masked query, but no query is stored"),
        ("https://h/in?a=********", "config.url has a partly masked query"),
        ("https://h/in?********&b=1", "config.url has a partly masked query"),
    ] {
        let sentence = fault(fixture.update(&made, &to(url)).await);
        assert!(sentence.starts_with(expected), "{sentence}");
    }
    assert_eq!(fixture.calls(), 1);
    assert_eq!(fixture.store.destinations().find(made.id).await.unwrap(), Some(made));
}

#[test]
fn origins_compare_by_connection_target() {
    let origin = url::Origin::of;
    for (one, other) in [
        ("http://h", "HTTP://H:80/x?y"),
        ("https://h?x", "https://h:0443/"),
        ("http://[::1]/", "http://[0:0::0:1]:80"),
        ("http://[2001:DB8::A]:1/", "http://[2001:db8::a]:1?x"),
    ] {
        assert!(origin(one).is_some() && origin(one) == origin(other), "{one} {other}");
    }
    for (one, other) in [
        ("http://h", "https://h"),
        ("http://h:443", "https://h"),
        ("https://h", "https://h:80"),
        ("http://h", "http://h."),
        ("http://h", "http://g"),
        ("http://127.0.0.1", "http://127.0.0.2"),
        ("http://[::1]", "http://[::2]"),
    ] {
        assert!(origin(one).is_some() && origin(one) != origin(other), "{one} {other}");
    }
    assert!(origin("").is_none() && origin("http://").is_none());
}
