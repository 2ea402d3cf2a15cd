//! Reads of the catalogue.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tollgate_tests::{Call, Reply, Report};

use crate::gateway::TestGateway;

pub async fn get(gateway: &TestGateway, path: &str) -> Result<Reply> {
    gateway.server.send(&Call::get(format!("/api/v1{path}")).key(&gateway.inference.secret)).await
}

pub async fn count(gateway: &TestGateway, query: &str) -> Result<u64> {
    let body = get(gateway, &format!("/models/count{query}")).await?.ok()?;
    body["data"]["count"].as_u64().with_context(|| format!("no count: {body}"))
}

/// Returns a row in the format of the model operation.
pub fn row(id: &str, canonical: &str, output: &str) -> Value {
    json!({
        "id": id, "canonical_slug": canonical, "name": format!("Row {id}"), "created": 1_790_000_000,
        "description": "A row of the tests.", "context_length": 32_000,
        "architecture": {"modality": format!("text+image->{output}"), "input_modalities": ["text", "image"],
            "output_modalities": [output], "tokenizer": "Other", "instruct_type": null},
        "pricing": {"prompt": "0.0000000208333333333333", "completion": "0.000002"},
        "top_provider": {"context_length": 32_000, "max_completion_tokens": 28_800, "is_moderated": true},
        "per_request_limits": null, "supported_parameters": ["seed"], "default_parameters": {"temperature": 0.70},
    })
}

pub fn alias(id: &str, target: &str) -> Value {
    let mut row = row(id, id, "decisions");
    row["alias_target"] = json!({"name": "Target", "slug": target});
    row
}

/// Starts a gateway with exactly these rows and the sandbox's.
pub async fn with_rows(rows: Value) -> Result<TestGateway> {
    let instance = tollgate_tests::Instance::new("")?;
    std::fs::write(instance.path().join("rows.json"), json!({ "data": rows }).to_string())?;
    instance.json(&["catalogue", "import", "rows.json", "--replace", "--yes"]).await?;
    TestGateway::of(instance).await
}

fn family() -> Value {
    let mut reasoning = row("acme/judge-2.5", "acme/judge-2.5-20260901", "decisions");
    reasoning["reasoning"] = json!({"mandatory": false, "default_effort": "low", "supported_efforts": ["low", "high"]});
    reasoning["hugging_face_id"] = json!("acme/judge");
    reasoning["benchmarks"] = json!({"artificial_analysis": {"intelligence_index": 41.50}});
    reasoning["pricing"]["input_cache_read"] = json!("0.000000001");
    reasoning["pricing"]["overrides"] = json!([{"min_prompt_tokens": 200_000, "prompt": "0.000000041"}]);
    json!([
        reasoning,
        row("acme/judge-2.5:free", "acme/judge-2.5-20260901", "decisions"),
        row("acme/lone:thinking", "acme/lone-20260101", "text"),
        row("acme/lone:free", "acme/lone-20260101", "text"),
        row("acme/painter", "acme/painter", "image"),
        row("acme/speaker", "acme/speaker", "speech"),
        alias("~acme/judge-latest", "~acme/judge-stable"),
        alias("~acme/judge-stable", "acme/judge-2.5-20260901"),
    ])
}

#[tokio::test]
async fn every_model_name_resolves_to_its_row() -> Result<()> {
    let gateway = with_rows(family()).await?;
    let mut report = Report::default();
    for (name, id) in [
        ("acme/judge-2.5", "acme/judge-2.5"),
        ("ACME/Judge-2.5", "acme/judge-2.5"),
        ("acme/judge-2.5-20260901", "acme/judge-2.5"),
        ("acme/judge-2.5:free", "acme/judge-2.5:free"),
        ("acme/judge-2.5%3Afree", "acme/judge-2.5:free"),
        ("acme/judge-2.5-20260901:free", "acme/judge-2.5:free"),
        ("acme/lone-20260101", "acme/lone:free"),
        ("~acme/judge-latest", "acme/judge-2.5"),
        ("%7Eacme/judge-latest", "acme/judge-2.5"),
        ("~ACME/Judge-Stable", "acme/judge-2.5"),
        ("acme/judge-2.5:nitro", "acme/judge-2.5"),
        ("acme/judge-2.5:Floor", "acme/judge-2.5"),
        ("acme/judge-2.5-20260901:exacto", "acme/judge-2.5"),
        ("~acme/judge-latest:online", "acme/judge-2.5"),
    ] {
        let reply = get(&gateway, &format!("/model/{name}")).await?;
        report.case(
            name,
            reply.ok().and_then(|body| {
                ensure!(body["data"]["id"] == id, "{}", body["data"]["id"]);
                ensure!(body.as_object().is_some_and(|members| members.len() == 1), "more than data");
                Ok(())
            }),
        );
    }
    let long = "a".repeat(3_000);
    for name in [
        "acme/judge-2.5:thinking",
        "acme/judge-2.5:turbo",
        "acme/judge-2.5:",
        "acme/lone:nitro",
        "acme/lone",
        "acme/judge-latest",
        "acme/judge",
        "other/judge-2.5",
        "acme/..",
        "%2e%2e/%2e%2e",
        "acme/%00",
        "acme/%zz",
        "acme/%ff%fe",
        "acme/judge-2.5%2Ffree",
        &format!("acme/{long}"),
        "acme/' OR 1=1",
    ] {
        let reply = get(&gateway, &format!("/model/{}", name.replace(' ', "%20"))).await?;
        report.case(name, reply.error(404, ""));
    }
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn model_has_all_interface_fields_and_keeps_unknown_ones() -> Result<()> {
    let gateway = with_rows(family()).await?;
    let mut report = Report::default();
    for name in ["acme/judge-2.5", "acme/painter"] {
        let reply = get(&gateway, &format!("/model/{name}")).await?;
        let model = reply.ok()?["data"].clone();
        report.case(name, fields(&model));
    }
    let reply = get(&gateway, "/model/acme/judge-2.5").await?;
    let model = &reply.ok()?["data"];
    ensure!(model["pricing"]["prompt"] == "0.0000000208333333333333", "{}", model["pricing"]);
    ensure!(model["pricing"]["image"] == "0" && model["pricing"]["request"] == "0", "{}", model["pricing"]);
    ensure!(model["pricing"]["input_cache_read"] == "0.000000001", "{}", model["pricing"]);
    ensure!(model["pricing"]["overrides"][0]["min_prompt_tokens"] == 200_000, "{}", model["pricing"]);
    ensure!(model["reasoning"]["supported_efforts"] == json!(["low", "high"]), "{model}");
    ensure!(model["hugging_face_id"] == "acme/judge" && model["benchmarks"].is_object(), "{model}");
    ensure!(model["links"]["details"] == "/api/v1/models/acme/judge-2.5-20260901/endpoints", "{}", model["links"]);
    ensure!(model["top_provider"]["is_moderated"] == true, "{model}");
    report.finish()
}

fn fields(model: &Value) -> Result<()> {
    let members = model.as_object().context("no object")?;
    for name in [
        "id",
        "canonical_slug",
        "name",
        "created",
        "description",
        "context_length",
        "architecture",
        "pricing",
        "top_provider",
        "supported_parameters",
        "links",
        "default_parameters",
        "expiration_date",
        "knowledge_cutoff",
        "per_request_limits",
        "supported_voices",
    ] {
        ensure!(members.contains_key(name), "{name} is missing");
    }
    for (object, names) in [
        (
            "architecture",
            ["input_modalities", "output_modalities", "modality", "tokenizer", "instruct_type"].as_slice(),
        ),
        ("pricing", &["prompt", "completion", "image", "request"]),
        ("top_provider", &["context_length", "is_moderated", "max_completion_tokens"]),
        ("links", &["details"]),
    ] {
        let inner = model[object].as_object().with_context(|| format!("{object} is no object"))?;
        for name in names {
            ensure!(inner.contains_key(*name), "{object}.{name} is missing");
        }
    }
    ensure!(model["created"].is_i64() && model["supported_parameters"].is_array());
    ensure!(["prompt", "completion", "image", "request"].iter().all(|name| model["pricing"][name].is_string()));
    Ok(())
}

#[tokio::test]
async fn count_equals_union_of_matching_rows() -> Result<()> {
    let gateway = with_rows(family()).await?;

    let decisions = count(&gateway, "?output_modalities=decisions").await?;
    let all = count(&gateway, "?output_modalities=all").await?;
    ensure!(all == decisions + 4, "{all} and {decisions}");
    let mut report = Report::default();
    for (query, expected) in [
        ("", 2),
        ("?output_modalities=text", 2),
        ("?output_modalities=TEXT", 2),
        ("?output_modalities=image", 1),
        ("?output_modalities=text,image", 3),
        ("?output_modalities=text%2Cimage", 3),
        ("?output_modalities=image,Speech,image", 2),
        ("?output_modalities=embeddings", 0),
        ("?output_modalities=text,all", all),
        ("?output_modalities=ALL", all),
        ("?&output_modalities=image", 1),
    ] {
        let counted = count(&gateway, query).await;
        report.case(
            query,
            counted.and_then(|counted| {
                ensure!(counted == expected, "{counted} instead of {expected}");
                Ok(())
            }),
        );
    }
    let valid = "text, image, embeddings, audio, video, rerank, decisions, speech, transcription, all";
    for query in [
        "?output_modalities=",
        "?output_modalities",
        "?output_modalities=,",
        "?output_modalities=text,",
        "?output_modalities=file",
        "?output_modalities=all,file",
        "?output_modalities=text;image",
        "?output_modalities=%zz",
        "?output_modalities=%ff",
        "?output_modalities=%E2%82%AC",
    ] {
        let reply = get(&gateway, &format!("/models/count{query}")).await?;
        // Invalid UTF-8 cannot be an unknown name.
        report.case(query, reply.error(400, if query.ends_with("%ff") { "output_modalities" } else { valid }));
    }
    let long = format!("?output_modalities={}", "x".repeat(4_000));
    let reply = get(&gateway, &format!("/models/count{long}")).await?;
    report.case(
        "a long one",
        reply.error(400, valid).and_then(|body| {
            ensure!(body.to_string().len() < 1_000, "the whole value is repeated");
            Ok(())
        }),
    );
    gateway.server.ensure_healthy().await?;
    report.finish()
}

/// The filters in the forms in which the published clients send them: encoded lists, floats, neutral pages.
#[tokio::test]
async fn list_and_count_agree_for_every_filter() -> Result<()> {
    let gateway = with_rows(family()).await?;
    let decisions = count(&gateway, "?output_modalities=decisions").await?;
    let mut report = Report::default();
    for (query, expected) in [
        ("output_modalities=all&q=PAINT", 1),
        ("output_modalities=all&q=20260901", 2),
        ("output_modalities=all&model_authors=acme", 8),
        ("output_modalities=all&model_authors=ACME%2Cnobody&input_modalities=image", 8),
        ("output_modalities=all&model_authors=acme&input_modalities=audio%2Cfile", 0),
        ("output_modalities=decisions&providers=sandbox", decisions - 4),
        ("output_modalities=all&providers=nobody", 0),
        ("output_modalities=all&model_authors=acme&context=32000", 8),
        ("output_modalities=all&model_authors=acme&context=32001", 0),
        ("output_modalities=all&model_authors=acme&max_price=0.0208333333333332", 0),
        ("output_modalities=all&model_authors=acme&max_price=0.0208333333333333", 8),
        ("output_modalities=all&model_authors=acme&max_price=1e-07", 0),
        ("output_modalities=all&model_authors=acme&max_output_price=2.0", 8),
        ("output_modalities=all&model_authors=acme&max_output_price=1.99", 0),
    ] {
        let counted = count(&gateway, &format!("?{query}")).await?;
        let sorted = format!("{query}&sort=newest&offset=0&limit=500");
        for listed in [query, &sorted] {
            let body = get(&gateway, &format!("/models?{listed}")).await?.ok()?;
            let length = body["data"].as_array().context("no rows")?.len() as u64;
            let all = (length, body["total_count"].as_u64(), counted) == (expected, Some(expected), expected);
            let error = || anyhow::anyhow!("{length} rows, total {} and count {counted}", body["total_count"]);
            report.case(listed, all.then_some(()).ok_or_else(error));
        }
    }
    for (query, message) in [
        ("zdr=true", "zdr is not supported"),
        ("category=programming", "category is not supported"),
        ("model_author=acme", "\"model_authors\""),
        ("max_price=-1", "max_price must be"),
        ("max_price=1e400", "max_price must be"),
        ("max_price=0x10", "max_price must be"),
        ("context=99999999999999999999", "context must be"),
        ("q=y&q=x", "q is in the query more than once"),
        ("q=%00", "q is not UTF-8 without NUL when decoded"),
        ("q=%ff", "q is not UTF-8"),
        (&format!("q={}", "x".repeat(3_000)), "q must have 1 to 256 characters"),
        (&format!("providers={}", "a,".repeat(1_500)), "providers must be"),
    ] {
        for path in ["/models", "/models/count"] {
            let reply = get(&gateway, &format!("{path}?{query}")).await?;
            report.case(&format!("{path}?{}", &query[..query.len().min(40)]), reply.error(400, message));
        }
    }
    for sort in ["most-popular", "latency-low-to-high", "NEWEST"] {
        let reply = get(&gateway, &format!("/models?sort={sort}")).await?;
        report.case(sort, reply.error(400, "is not supported"));
    }
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn key_lists_models_that_its_guardrails_permit() -> Result<()> {
    let gateway = with_rows(family()).await?;
    let ids = async |key: &str, query: &str| -> Result<Vec<String>> {
        let call = Call::get(format!("/api/v1/models/user?output_modalities=all{query}")).key(key);
        let body = gateway.server.send(&call).await?.ok()?;
        let rows = body["data"].as_array().context("no rows")?;
        ensure!(query.contains("limit") || body["total_count"] == rows.len(), "{}", body["total_count"]);
        Ok(rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).collect())
    };
    let (key, management) = (&gateway.inference.secret, &gateway.management.secret);
    let all = ids(management, "").await?;
    ensure!(ids(key, "").await? == all, "a key without a guardrail");
    let rules = json!({"name": "g", "ignored_models": ["acme/judge-2.5"], "allowed_providers": ["sandbox"]});
    let create = Call::post("/api/v1/guardrails").key(management).json(rules.to_string());
    let created = gateway.server.send(&create).await?;
    ensure!(created.status == 201, "{}", created.text());
    let guardrail = serde_json::from_slice::<Value>(&created.body)?["data"]["id"].clone();
    let path = format!("/api/v1/guardrails/{}/assignments/keys", guardrail.as_str().context("no id")?);
    let assign = Call::post(path).key(management).json(json!({"key_hashes": [gateway.inference.hash]}).to_string());
    gateway.server.send(&assign).await?.ok()?;
    let permitted: Vec<String> =
        all.iter().filter(|id| !id.contains("judge-2.5") && !id.starts_with('~')).cloned().collect();
    let since = tokio::time::Instant::now();
    while ids(key, "").await? != permitted {
        ensure!(since.elapsed().as_secs() < 20, "{:?} instead of {permitted:?}", ids(key, "").await?);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    ensure!(ids(management, "").await? == all, "a management key has no guardrail");
    ensure!(
        ids(key, "&model_authors=acme&sort=newest&offset=1&limit=2").await? == ["acme/lone:thinking", "acme/painter"]
    );
    Ok(())
}

#[tokio::test]
async fn zero_retention_endpoints_are_listed() -> Result<()> {
    let gateway = TestGateway::start(
        "[[providers]]\nslug = \"keeps\"\nwire = \"system-one\"\nbase_url = \"http://127.0.0.1:9\"\n\
         [[providers]]\nslug = \"private\"\nwire = \"system-one\"\nbase_url = \"http://127.0.0.1:9\"\n\
         data_collection = \"zdr\"\n\
         [[endpoints]]\nmodel = \"acme/pair\"\nprovider = \"keeps\"\nupstream_model = \"m\"\n\
         [[endpoints]]\nmodel = \"acme/pair\"\nprovider = \"private\"\nupstream_model = \"m\"\n",
    )
    .await?;
    let body = get(&gateway, "/endpoints/zdr").await?.ok()?;
    let rows = body["data"].as_array().context("no rows")?;
    ensure!(rows.iter().all(|row| row["zdr"] == true), "{body}");
    let pairs: Vec<_> = rows.iter().filter(|row| row["model_id"] == "acme/pair").collect();
    ensure!(pairs.len() == 1 && pairs[0]["tag"] == "private", "{body}");
    let of_model = get(&gateway, "/models/acme/pair/endpoints").await?.ok()?;
    ensure!(of_model["data"]["endpoints"][1] == *pairs[0], "{of_model}");
    Ok(())
}

#[tokio::test]
async fn starter_catalogue_has_decision_models_of_several_vendors() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let listed = gateway.instance.json(&["catalogue", "list"]).await?;
    let rows = crate::costs::rows(&listed)?;
    let all = count(&gateway, "?output_modalities=all").await?;
    ensure!(rows.len() as u64 == all, "{} rows are listed and {all} counted", rows.len());
    ensure!(count(&gateway, "").await? >= 1, "no text model");
    let mut authors = std::collections::BTreeSet::new();
    for row in rows {
        let id = row["id"].as_str().context("a row without an id")?;
        let model = get(&gateway, &format!("/model/{id}")).await?.ok()?["data"].clone();
        let aliased = !row["alias_target"].is_null() || id.starts_with('~');
        ensure!(aliased || model["id"] == id, "{id} answers with {}", model["id"]);
        fields(&model).with_context(|| id.to_owned())?;
        let decides = model["architecture"]["output_modalities"].to_string().contains("decisions");
        if decides && !id.starts_with("sandbox/") {
            authors.insert(id.split('/').next().unwrap_or_default().to_owned());
        }
    }
    ensure!(authors.len() >= 3, "decision models of {authors:?} only");
    Ok(())
}

#[tokio::test]
async fn matching_etag_returns_304() -> Result<()> {
    let gateway = with_rows(family()).await?;
    for path in ["/model/acme/judge-2.5", "/models/count?output_modalities=all"] {
        let first = get(&gateway, path).await?;
        first.ok()?;
        let tag = first.header("etag").to_owned();
        ensure!(tag.starts_with('"') || tag.starts_with("W/\""), "{path}: {tag:?}");
        let other = "\"something-else\"".to_owned();
        for (given, status) in [
            (tag.clone(), 304),
            (format!("{other}, {tag}"), 304),
            (format!("W/{}", tag.trim_start_matches("W/")), 304),
            ("*".to_owned(), 304),
            (other, 200),
            ("nonsense".to_owned(), 200),
        ] {
            let call =
                Call::get(format!("/api/v1{path}")).key(&gateway.inference.secret).header("if-none-match", &given);
            let reply = gateway.server.send(&call).await?;
            ensure!(reply.status == status, "{path}, {given}: {}", reply.status);
            ensure!(reply.header("etag") == tag, "{path}, {given}: etag {:?}", reply.header("etag"));
            ensure!(reply.body.is_empty() == (status == 304), "{path}, {given}: {}", reply.text());
            ensure!(!reply.header("x-request-id").is_empty(), "{path}, {given}: no x-request-id");
        }
        // An entity tag does not replace a key.
        let call = Call::get(format!("/api/v1{path}")).header("if-none-match", &tag);
        gateway.server.send(&call).await?.envelope(401)?;
    }
    let one = get(&gateway, "/model/acme/judge-2.5").await?;
    let same = get(&gateway, "/model/~acme/judge-latest").await?;
    let other = get(&gateway, "/model/acme/painter").await?;
    ensure!(one.body == same.body, "an alias answers with its target");
    ensure!(one.header("etag") != other.header("etag"), "two models have one tag");
    Ok(())
}
