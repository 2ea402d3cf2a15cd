//! The files of a container: lists, records, downloads and deletions.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Reply, request};
use super::gateway::{BASE, CONTAINER, Caller, Gateway, Setup, workspace};

async fn with_files(paths: &[&str]) -> Gateway {
    let setup = Setup::new().await;
    for path in paths {
        setup.put(path, path.len()).await;
    }
    setup.start()
}

async fn get(gateway: &Gateway, path: &str) -> Reply {
    gateway.get(Caller::Inference, &format!("/containers/{path}"), &[]).await
}

async fn delete(gateway: &Gateway, caller: Caller, path: &str) -> Reply {
    let bearer = caller.bearer();
    gateway.raw(&request("DELETE", &format!("{BASE}/containers/{path}"), &[("Authorization", &bearer)], b"")).await
}

#[tokio::test]
async fn files_are_listed_in_order_of_their_paths() {
    let gateway = with_files(&["b", "out/a.csv", "out.txt"]).await;
    let list = get(&gateway, &format!("{CONTAINER}/files")).await.json();
    let row = |path: &str, id: &str| {
        json!({
            "id": id, "object": "container.file", "container_id": CONTAINER, "bytes": path.len(),
            "created_at": 1_767_225_600, "path": path, "source": "assistant",
        })
    };
    let rows = [row("b", "cfile_Yg"), row("out.txt", "cfile_b3V0LnR4dA"), row("out/a.csv", "cfile_b3V0L2EuY3N2")];
    let expected = json!({
        "object": "list", "data": rows, "first_id": "cfile_Yg", "last_id": "cfile_b3V0L2EuY3N2", "has_more": false,
    });
    assert_eq!(list, expected);
    let mut after = String::new();
    for (position, row) in rows.iter().enumerate() {
        let page = get(&gateway, &format!("{CONTAINER}/files?limit=1{after}")).await.json();
        assert_eq!((&page["data"], page["has_more"] == true), (&json!([row]), position < 2));
        after = format!("&after={}", page["last_id"].as_str().unwrap());
        let record = get(&gateway, &format!("{CONTAINER}/files/{}", row["id"].as_str().unwrap())).await;
        assert_eq!((record.status, &record.json()), (200, row), "the record is the row");
    }
    // `out/`, a position that is no file.
    let page = get(&gateway, &format!("{CONTAINER}/files?after=cfile_b3V0Lw")).await.json();
    assert_eq!(page["data"], json!([rows[2]]));
}

#[tokio::test]
async fn unknown_containers_are_empty_pages() {
    let gateway = with_files(&["a"]).await;
    let empty = json!({"object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false});
    assert_eq!(get(&gateway, "sess_none/files").await.json(), empty);
    let path = format!("/containers/{CONTAINER}/files");
    assert_eq!(gateway.get(Caller::OfOtherWorkspace, &path, &[]).await.json(), empty);
}

#[tokio::test]
async fn file_is_downloaded_and_deleted_once() {
    let gateway = with_files(&["é \"x\".csv"]).await;
    let path = format!("{CONTAINER}/files/cfile_w6kgIngiLmNzdg");
    let content = get(&gateway, &format!("{path}/content")).await;
    assert_eq!((content.status, &content.body[..]), (200, &[7; 10][..]));
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-length", "10"),
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "attachment; filename=\"_ _x_.csv\"; filename*=UTF-8''%C3%A9%20%22x%22.csv"),
    ] {
        assert_eq!(content.header(name), Some(value), "{name}");
    }
    assert_eq!(content.header("etag"), None, "its hash is unknown");
    for caller in [Caller::OfOtherWorkspace, Caller::Management] {
        let status = if matches!(caller, Caller::Management) { 403 } else { 404 };
        for end in ["", "/content"] {
            gateway.get(caller, &format!("/containers/{path}{end}"), &[]).await.expect_error(status);
        }
        delete(&gateway, caller, &path).await.expect_error(status);
    }
    let deleted = delete(&gateway, Caller::Inference, &path).await;
    let expected = json!({"id": "cfile_w6kgIngiLmNzdg", "object": "container.file.deleted", "deleted": true});
    assert_eq!((deleted.status, deleted.json()), (200, expected));
    delete(&gateway, Caller::Inference, &path).await.expect_error(404);
    for end in ["", "/content"] {
        get(&gateway, &format!("{path}{end}")).await.expect_error(404);
    }
    assert_eq!(get(&gateway, &format!("{CONTAINER}/files")).await.json()["data"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn malformed_ids_and_parameters_are_rejected() {
    let gateway = with_files(&["a"]).await;
    // base64url of `../x`, `/etc`, NUL; then padding, another prefix, an encoded slash.
    for id in ["cfile_Li4veA", "cfile_L2V0Yw", "cfile_AA", "cfile_YQ==", "tgfile_1", "..%2Fa", "%ff"] {
        for end in ["", "/content"] {
            let message = get(&gateway, &format!("{CONTAINER}/files/{id}{end}")).await.expect_error(400);
            assert!(message.starts_with("file_id "), "{id}: {message}");
        }
        delete(&gateway, Caller::Inference, &format!("{CONTAINER}/files/{id}")).await.expect_error(400);
    }
    for path in ["a%2Fb/files", "%2e%2e/files", "%ff/files", "a.b/files/cfile_YQ", "a.b/files/cfile_YQ/content"] {
        assert!(get(&gateway, path).await.expect_error(400).starts_with("container_id "), "{path}");
    }
    for (query, expected) in [
        ("limit=0", "limit must be"),
        ("limit=1001", "limit must be"),
        ("after=a", "after must be"),
        ("after=cfile__w", "after must be"),
        ("aftr=cfile_YQ", "unknown query parameter"),
    ] {
        let message = get(&gateway, &format!("{CONTAINER}/files?{query}")).await.expect_error(400);
        assert!(message.starts_with(expected), "{query}: {message}");
    }
    get(&gateway, &format!("{CONTAINER}/files/cfile_YQ?limit=1")).await.expect_error(400);
}

async fn put(gateway: &Gateway, caller: Caller, query: &str, body: &[u8]) -> Reply {
    let bearer = caller.bearer();
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "text/csv")];
    let path = format!("{BASE}/containers/{CONTAINER}/files?workspace_id={}{query}", workspace(1));
    gateway.raw(&request("PUT", &path, &headers, body)).await
}

#[tokio::test]
async fn put_creates_and_replaces_a_file() {
    let gateway = with_files(&[]).await;
    let created = put(&gateway, Caller::Management, "&path=out%2Fa%20b.csv", b"1,2\n").await;
    assert_eq!(created.status, 200, "{}", String::from_utf8_lossy(&created.body));
    let record = created.json();
    assert_eq!((&record["path"], &record["bytes"]), (&json!("out/a b.csv"), &json!(4)));
    assert_eq!(put(&gateway, Caller::Management, "&path=out/a+b.csv", b"").await.status, 200);
    let content = get(&gateway, &format!("{CONTAINER}/files/{}/content", record["id"].as_str().unwrap())).await;
    assert_eq!((content.status, &content.body[..]), (200, &b""[..]));
    assert_eq!(put(&gateway, Caller::Management, "&path=out/c", &[7; 100]).await.status, 200);
    put(&gateway, Caller::Management, "&path=out/c", &[7; 101]).await.expect_error(413);
    put(&gateway, Caller::Management, "&path=out/c/d", b"x").await.expect_error(409);
    let kept = get(&gateway, &format!("{CONTAINER}/files?after=cfile_b3V0L2I")).await.json();
    assert_eq!(kept["data"][0]["bytes"], 100, "the former file stays");
}

#[tokio::test]
async fn put_rejects_hostile_paths_and_other_callers() {
    let gateway = with_files(&[]).await;
    for path in
        ["", "%2Fetc%2Fpasswd", "..%2Fx", "a%2F..%2F..%2Fx", "a%00b", "a%0Ab", "a%5Cb", "a%2F", "%ff", ".", "a%2F%2Fb"]
    {
        put(&gateway, Caller::Management, &format!("&path={path}"), b"x").await.expect_error(400);
    }
    put(&gateway, Caller::Management, &format!("&path={}", "x".repeat(1_025)), b"x").await.expect_error(400);
    put(&gateway, Caller::Management, "", b"x").await.expect_error(400);
    put(&gateway, Caller::Management, "&path=a&path=b", b"x").await.expect_error(400);
    put(&gateway, Caller::Management, "&path=a&overwrite=true", b"x").await.expect_error(400);
    put(&gateway, Caller::Inference, "&path=a", b"x").await.expect_error(403);
    let bearer = Caller::Management.bearer();
    let unknown = format!("{BASE}/containers/{CONTAINER}/files?path=a&workspace_id={}", workspace(9));
    let headers = [("Authorization", bearer.as_str()), ("Content-Encoding", "gzip")];
    gateway.raw(&request("PUT", &unknown, &headers[..1], b"x")).await.expect_error(404);
    gateway.raw(&request("PUT", &unknown, &headers, b"x")).await.expect_error(415);
    assert_eq!(get(&gateway, &format!("{CONTAINER}/files")).await.json()["data"], json!([]));
}

#[tokio::test]
async fn broken_upload_leaves_nothing() {
    let gateway = with_files(&[]).await;
    let path = format!("{BASE}/containers/{CONTAINER}/files?path=a&workspace_id={}", workspace(1));
    let head = |framing: &str| {
        let bearer = Caller::Management.bearer();
        format!("PUT {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\nConnection: close\r\n{framing}\r\n\r\n")
    };
    for partial in [head("Content-Length: 10") + "123", head("Transfer-Encoding: chunked") + "3\r\n123\r\n"] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        stream.write_all(partial.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(!String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
        assert_eq!(get(&gateway, &format!("{CONTAINER}/files")).await.json()["data"], json!([]));
    }
    let whole = head("Transfer-Encoding: chunked") + "3\r\n123\r\n1\r\n4\r\n0\r\n\r\n";
    let reply = gateway.raw(whole.as_bytes()).await;
    assert_eq!((reply.status, &reply.json()["bytes"]), (200, &json!(4)));
    let large = head("Transfer-Encoding: chunked") + &format!("65\r\n{}\r\n0\r\n\r\n", "x".repeat(101));
    gateway.raw(large.as_bytes()).await.expect_error(413);
}
