//! Destinations: creation, change, reads, and protection of their secrets.

use super::*;

#[tokio::test]
async fn private_destination_addresses_are_rejected() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let gateway = TestGateway::start("").await?;
    let port = receiver.address().port();
    for host in
        ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "169.254.169.254", "10.0.0.1"]
    {
        let hook = json!({"name": "h", "type": "webhook", "config": {"url": format!("http://{host}:{port}/"), "secret": SECRET}});
        let reply = send(&gateway.server, &gateway.management, Method::POST, DESTINATIONS, &hook).await?;
        let told = reply.envelope(400)?.to_string();
        ensure!(told.contains("not public") || told.contains("cannot be resolved"), "{host}: {told}");
    }
    ensure!(receiver.take_requests().is_empty(), "a receiver was called");
    let listed = gateway.server.send(&Call::get(DESTINATIONS).key(&gateway.management.secret)).await?.ok()?;
    ensure!(listed == json!({"data": [], "total_count": 0}), "{listed}");
    gateway.server.stop().await
}

#[tokio::test]
async fn destinations_are_managed_without_showing_secrets() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let gateway = TestGateway::start(&local_receivers("")).await?;
    let hook = with(
        webhook(&receiver),
        json!({"config": {
        "url": format!("{}/in?token=t0ken", receiver.base_url()), "secret": SECRET, "headers": {"authorization": "Bearer h1dden"}}}),
    );
    let id = create(&gateway, &hook).await?;
    receiver.take_requests();
    let one = format!("{DESTINATIONS}/{id}");
    let on = async |method: Method, path: &str, body: Value| {
        send(&gateway.server, &gateway.management, method, path, &body).await
    };
    let shown = on(Method::GET, &one, json!({})).await?.ok()?;
    let record = &shown["data"];
    ensure!(
        record["config"]["headers"] == json!({"authorization": "********"}) && record["config"]["secret"] == "********"
    );
    ensure!(record["config"]["url"] == format!("{}/in?********", receiver.base_url()), "{record}");
    ensure!(record["type"] == "webhook" && record["sampling_rate"] == 1 && record["api_key_hashes"].is_null());

    // Masked secrets in an update keep their values, and no test call is sent.
    let back = json!({"name": "renamed", "config": record["config"], "sampling_rate": 0.25, "type": "webhook"});
    let changed = on(Method::PATCH, &one, back).await?.ok()?;
    ensure!(
        changed["data"]["name"] == "renamed"
            && changed["data"]["sampling_rate"] == 0.25
            && !changed["data"]["updated_at"].is_null()
    );
    ensure!(receiver.take_requests().is_empty());
    let url = record["config"]["url"].clone();
    let patch =
        json!({"config": {"url": url, "headers": {"authorization": "********", "x-more": "1"}}, "sampling_rate": 1});
    on(Method::PATCH, &one, patch).await?.ok()?;
    let test = receiver.take_request()?;
    ensure!(
        header(&test, "authorization") == Some("Bearer h1dden") && header(&test, "x-more") == Some("1"),
        "{}",
        test.head
    );
    ensure!(test.head.contains("?token=t0ken"), "the masked query was kept");
    // Masked secrets cannot be redirected to another receiver.
    let attacker = Upstream::start(Behaviour::status(200)).await?;
    let masked = json!({"authorization": "********", "x-more": "********"});
    let moved = json!({"config": {"url": format!("{}/in", attacker.base_url()), "headers": masked}});
    let told = on(Method::PATCH, &one, moved).await?.envelope(400)?.to_string();
    ensure!(told.contains("config.headers.authorization, config.headers.x-more, config.secret"), "{told}");
    ensure!(attacker.take_requests().is_empty() && receiver.take_requests().is_empty(), "a receiver was called");
    receiver.behave(Behaviour::status(401));
    let signed = json!({"config": {"url": url, "headers": masked, "secret": "another secret, long enough"}});
    let refused = on(Method::PATCH, &one, signed).await?;
    ensure!(refused.envelope(400)?.to_string().contains("answered with status 401"));

    for (method, path, body, status, sentence) in [
        (Method::PATCH, one.as_str(), json!({}), 400, "No update fields"),
        (Method::PATCH, &one, json!({"type": "otel-collector"}), 400, "type cannot be changed"),
        (Method::PATCH, &one, json!({"sampling_rate": 0}), 400, "sampling_rate must be"),
        (Method::PATCH, &one, json!({"api_key_hashes": []}), 400, "api_key_hashes must have"),
        (Method::PATCH, &one, json!({"api_key_hashes": ["a".repeat(64)]}), 400, "not an active inference key"),
        (Method::PATCH, &one, json!({"api_key_hashes": [gateway.management.hash]}), 400, "not an active inference key"),
        (Method::POST, DESTINATIONS, json!({"name": "x"}), 400, "type is required"),
        (
            Method::POST,
            DESTINATIONS,
            json!({"name": "x", "type": "s3", "config": {"url": "http://h"}}),
            400,
            "must be otel-collector or webhook",
        ),
        (
            Method::POST,
            DESTINATIONS,
            json!({"name": "x", "type": "otel-collector", "config": {"url": "http://u:p@h"}}),
            400,
            "must not have a user",
        ),
        (
            Method::POST,
            DESTINATIONS,
            with(webhook(&receiver), json!({"workspace_id": "01990000-0000-7000-8000-000000000001"})),
            404,
            "workspace not found",
        ),
        (Method::POST, DESTINATIONS, json!([1]), 400, ""),
        (Method::GET, &format!("{DESTINATIONS}/nonsense"), json!({}), 404, "Resource not found"),
        (
            Method::DELETE,
            &format!("{DESTINATIONS}/01990000-0000-7000-8000-000000000001"),
            json!({}),
            404,
            "Resource not found",
        ),
    ] {
        let told = on(method.clone(), path, body.clone()).await?.envelope(status)?.to_string();
        ensure!(told.contains(sentence), "{method} {body}: {told}");
    }
    for method in [Method::GET, Method::POST] {
        let reply = send(&gateway.server, &gateway.inference, method, DESTINATIONS, &hook).await?;
        reply.error(403, "Only management keys can perform this operation")?;
    }
    ensure!(gateway.server.send(&Call::new(Method::PUT, &one).key(&gateway.management.secret)).await?.status == 405);

    receiver.behave(Behaviour::status(200));
    for _ in 0..4 {
        ensure!(on(Method::POST, DESTINATIONS, hook.clone()).await?.status == 201);
    }
    on(Method::POST, DESTINATIONS, hook.clone())
        .await?
        .error(409, "A workspace has at most 5 destinations of the type webhook")?;

    // Pending messages are deleted with their destination.
    receiver.behave(Behaviour::status(500));
    sleep(Duration::from_millis(900)).await;
    decide(&gateway.server, &gateway.inference, 1).await?;
    wait_until(&gateway.instance, "pending", 5).await?;
    ensure!(on(Method::DELETE, &one, json!({})).await?.ok()? == json!({"deleted": true}));
    wait_until(&gateway.instance, "pending", 4).await?;
    on(Method::GET, &one, json!({})).await?.envelope(404)?;

    let log = gateway.instance.json(&["audit", "list", "--limit", "100"]).await?.to_string();
    for action in ["destination.create", "destination.update", "destination.delete"] {
        ensure!(log.contains(action), "{action} is not in the log");
    }
    let everything = format!("{log}{}", gateway.server.output());
    for secret in [SECRET, "t0ken", "h1dden"] {
        ensure!(!everything.contains(secret), "{secret} is shown");
    }
    gateway.server.stop().await
}
