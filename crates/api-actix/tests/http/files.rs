//! Lists, records and deletions of documents.

use serde_json::{Value, json};

use super::gateway::{CONTAINER, Caller, Gateway, Setup, workspace};

impl Gateway {
    pub async fn promote(&self, file: &str) -> String {
        let path = format!("/containers/{CONTAINER}/files/{file}/promote");
        let reply = self.post(Caller::Inference, &path, &[], b"").await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    async fn list(&self, query: &str) -> Value {
        let reply = self.get(Caller::Inference, &format!("/files{query}"), &[]).await;
        assert_eq!(reply.status, 200, "{query}: {reply:?}");
        reply.json()
    }

    async fn delete(&self, caller: Caller, path: &str, headers: &[(&str, &str)]) -> super::client::Reply {
        let bearer = caller.bearer();
        let headers = [&[("Authorization", bearer.as_str())], headers].concat();
        self.send("DELETE", &format!("{}{path}", super::gateway::BASE), &headers, b"").await
    }
}

/// Starts a gateway with that many documents; returns their ids in order.
async fn with_documents(count: usize) -> (Gateway, Vec<String>) {
    let setup = Setup::new().await;
    let file = setup.put("out/report.csv", 9).await;
    let gateway = setup.start();
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(gateway.promote(&file).await);
    }
    (gateway, ids)
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|file| file["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn pages_follow_cursors_and_ids_to_the_end() {
    let (gateway, documents) = with_documents(5).await;
    assert_eq!(ids(&gateway.list("").await), documents, "oldest first");
    for (parameter, member) in [("cursor", "cursor"), ("after", "last_id"), ("after_id", "last_id")] {
        let (mut seen, mut position) = (Vec::new(), String::new());
        loop {
            let page = gateway.list(&format!("?limit=2{position}")).await;
            seen.extend(ids(&page).into_iter().map(str::to_owned));
            assert_eq!((&page["first_id"], &page["last_id"]), (&page["data"][0]["id"], &json!(seen.last())));
            if page["has_more"] == false {
                assert_eq!(page["cursor"], Value::Null, "the clients' iteration ends");
                break;
            }
            position = format!("&{parameter}={}", page[member].as_str().unwrap());
        }
        assert_eq!(seen, documents, "{parameter}");
    }
    assert_eq!(gateway.list("?limit=5").await["has_more"], false);
    let beyond = gateway.list(&format!("?after={}&order=asc", documents[4])).await;
    assert_eq!((&beyond["data"], &beyond["first_id"], &beyond["last_id"]), (&json!([]), &Value::Null, &Value::Null));
}

#[tokio::test]
async fn pages_neither_repeat_nor_skip_when_documents_are_deleted() {
    let (gateway, documents) = with_documents(4).await;
    let first = gateway.list("?limit=2").await;
    for id in &documents[..2] {
        assert_eq!(gateway.delete(Caller::Inference, &format!("/files/{id}"), &[]).await.status, 200);
    }
    let second = gateway.list(&format!("?limit=2&cursor={}", first["cursor"].as_str().unwrap())).await;
    assert_eq!(ids(&second), documents[2..]);
}

#[tokio::test]
async fn records_and_deletions_have_the_shape_of_the_client() {
    let (gateway, documents) = with_documents(3).await;
    let [native, vendor_a, vendor_b] = &documents[..] else { panic!("{documents:?}") };
    let path = |id: &str| format!("/files/{id}?beta=true");
    let cases: [(_, _, &[(&str, &str)], _); 3] = [
        (native, "native", &[], json!({"_shape": "native", "id": native, "type": "file_deleted"})),
        (
            vendor_a,
            "vendor_a",
            &[("anthropic-version", "2023-06-01")],
            json!({"_shape": "vendor_a", "id": vendor_a, "type": "file_deleted"}),
        ),
        (
            vendor_b,
            "openai",
            &[("User-Agent", "OpenAI/Python 2.0")],
            json!({"_shape": "openai", "id": vendor_b, "object": "file", "deleted": true}),
        ),
    ];
    for (id, shape, headers, deleted) in cases {
        let list = gateway.get(Caller::Inference, "/files", headers).await.json();
        assert_eq!((&list["_shape"], &list["data"][0]["_shape"]), (&json!(shape), &json!(shape)));
        let record = gateway.get(Caller::Inference, &path(id), headers).await;
        assert_eq!((record.status, &record.json()), (200, &list["data"][0]), "the record is the row");
        let reply = gateway.delete(Caller::Inference, &path(id), headers).await;
        assert_eq!((reply.status, reply.json()), (200, deleted));
        gateway.get(Caller::Inference, &path(id), headers).await.expect_error(404);
        gateway.delete(Caller::Inference, &path(id), headers).await.expect_error(404);
    }
}

#[tokio::test]
async fn documents_of_other_workspaces_and_malformed_ids_are_the_same_404() {
    let (gateway, documents) = with_documents(1).await;
    let id = &documents[0];
    let other = gateway.get(Caller::OfOtherWorkspace, "/files", &[]).await.json();
    assert_eq!(other["data"], json!([]));
    let unknown = "tgfile_00000000000000000000000000000009";
    for (caller, id) in [
        (Caller::OfOtherWorkspace, id.as_str()),
        (Caller::Inference, unknown),
        (Caller::Inference, "tgfile_"),
        (Caller::Inference, "or_file_1"),
        (Caller::Inference, "..%2f..%2fetc"),
        (Caller::Inference, "%2e%2e"),
        (Caller::Inference, "%ff"),
        (Caller::Inference, "%00"),
    ] {
        let path = format!("/files/{id}");
        assert_eq!(gateway.get(caller, &path, &[]).await.expect_error(404), "Resource not found", "{id}");
        assert_eq!(gateway.delete(caller, &path, &[]).await.expect_error(404), "Resource not found", "{id}");
    }
    assert_eq!(ids(&gateway.list("").await), [id], "nothing was deleted");
}

#[tokio::test]
async fn unsupported_parameters_are_rejected() {
    let (gateway, documents) = with_documents(3).await;
    let cursor = gateway.list("?limit=1").await["cursor"].as_str().unwrap().to_owned();
    let other = Caller::OfOtherWorkspace;
    let reply = gateway.get(other, &format!("/files?cursor={cursor}"), &[]).await;
    assert!(reply.expect_error(400).starts_with("cursor "), "the cursor of another caller");
    for (query, expected) in [
        ("limit=0", "limit must be 1 to 1000"),
        ("limit=1001", "limit must be 1 to 1000"),
        ("limit=all", "limit must be a whole number"),
        ("limit=1&limit=1", "limit is in the query more than once"),
        ("order=desc", "order must be asc"),
        ("before_id=tgfile_1", "before_id is not supported"),
        ("provider=openai", "provider is not supported"),
        ("after=x", "after must be the id of a file"),
        ("cursor=tgfile_1", "cursor must be"),
        ("limt=1", r#"unknown query parameter "limt"; the nearest known query parameter is "limit""#),
    ] {
        let message = gateway.get(Caller::Inference, &format!("/files?{query}"), &[]).await.expect_error(400);
        assert!(message.starts_with(expected), "{query}: {message}");
    }
    let both = format!("/files?cursor={cursor}&after={}", documents[0]);
    assert!(gateway.get(Caller::Inference, &both, &[]).await.expect_error(400).starts_with("at most one"));
    for path in ["/files/x?provider=openai", "/files/x?limit=1"] {
        gateway.get(Caller::Inference, path, &[]).await.expect_error(400);
        gateway.delete(Caller::Inference, path, &[]).await.expect_error(400);
    }
}

#[tokio::test]
async fn workspace_id_selects_no_other_workspace() {
    let (gateway, documents) = with_documents(1).await;
    let own = gateway.list(&format!("?workspace_id={}", workspace(1))).await;
    assert_eq!(ids(&own), documents);
    for path in ["/files".to_owned(), format!("/files/{}", documents[0])] {
        for name in [workspace(2).to_string(), "nonsense".to_owned()] {
            let path = format!("{path}?workspace_id={name}");
            let message = gateway.get(Caller::Inference, &path, &[]).await.expect_error(400);
            assert_eq!(message, "workspace_id is not the workspace of this key");
        }
    }
}

#[tokio::test]
async fn management_keys_read_and_delete_records_but_read_no_content() {
    let (gateway, documents) = with_documents(1).await;
    let named = format!("?workspace_id={}", workspace(1));
    let file = format!("/files/{}", documents[0]);
    let listed = gateway.get(Caller::Management, &format!("/files{named}"), &[]).await;
    assert_eq!(ids(&listed.json()), documents);
    assert_eq!(gateway.get(Caller::Management, &format!("{file}{named}"), &[]).await.status, 200);
    let elsewhere = format!("{file}?workspace_id={}", workspace(2));
    gateway.get(Caller::Management, &elsewhere, &[]).await.expect_error(404);
    gateway.get(Caller::Management, &format!("{file}/content{named}"), &[]).await.expect_error(403);
    for path in ["/files".to_owned(), file.clone()] {
        gateway.get(Caller::Unknown, &path, &[]).await.expect_error(401);
    }
    assert_eq!(gateway.delete(Caller::Management, &format!("{file}{named}"), &[]).await.status, 200);
    assert!(ids(&gateway.list("").await).is_empty());
}
