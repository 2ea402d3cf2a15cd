//! Downloads of documents.

use api_actix::AdmissionSettings;
use domain::container::{BlobKey, BlobStore};
use domain::testing::{MemoryBlobStore, MemoryByteSource};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Reply, exchange, request};
use super::gateway::{BASE, CONTAINER, Caller, Gateway, Setup, workspace};

const CONTENT: &[u8] = b"0123456789";
const SHA256: &str = "\"84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882\"";

/// Starts a gateway with a document; returns its id.
async fn with_document(path: &str, content: &[u8]) -> (Gateway, String, MemoryBlobStore) {
    with_settings(path, content, AdmissionSettings::default()).await
}

async fn with_settings(path: &str, content: &[u8], admission: AdmissionSettings) -> (Gateway, String, MemoryBlobStore) {
    let mut setup = Setup::new().await;
    setup.settings.admission = admission;
    setup.limits.max_file_bytes = u64::MAX;
    setup.limits.quota.bytes = u64::MAX;
    let path: domain::container::ContainerPath = path.parse().unwrap();
    let key = BlobKey::container_file(workspace(1), &CONTAINER.parse().unwrap(), &path);
    setup.blobs.put(&key, MemoryByteSource::new([content]).boxed()).await.unwrap();
    let blobs = setup.blobs.clone();
    let gateway = setup.start();
    let id = gateway.promote(&path.file_id()).await;
    (gateway, id, blobs)
}

fn blob(id: &str) -> BlobKey {
    BlobKey::document(workspace(1), &id.parse().unwrap())
}

impl Gateway {
    async fn download(&self, id: &str, headers: &[(&str, &str)]) -> Reply {
        self.get(Caller::Inference, &format!("/files/{id}/content"), headers).await
    }
}

fn content_request(method: &str, id: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let bearer = Caller::Inference.bearer();
    let headers = [&[("Authorization", bearer.as_str())], headers].concat();
    request(method, &format!("{BASE}/files/{id}/content"), &headers, b"")
}

#[tokio::test]
async fn download_has_the_bytes_and_safe_headers() {
    let (gateway, id, _) = with_document("out/é \"x\".csv", CONTENT).await;
    let reply = gateway.download(&id, &[]).await;
    assert_eq!((reply.status, &reply.body[..]), (200, CONTENT));
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-length", "10"),
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "attachment; filename=\"_ _x_.csv\"; filename*=UTF-8''%C3%A9%20%22x%22.csv"),
        ("etag", SHA256),
        ("accept-ranges", "bytes"),
        ("cache-control", "private, no-cache"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    assert!(reply.header("x-request-id").is_some() && reply.header("content-range").is_none());
}

#[tokio::test]
async fn head_has_the_headers_and_no_body() {
    let (gateway, id, blobs) = with_document("a", CONTENT).await;
    let get = gateway.download(&id, &[]).await;
    // HEAD opens no file.
    blobs.delete(&blob(&id)).await.unwrap();
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(&content_request("HEAD", &id, &[("Range", "bytes=0-0")])).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
    for name in ["content-length", "etag", "content-disposition", "accept-ranges"] {
        let expected = format!("{name}: {}", get.header(name).unwrap());
        assert!(answer.contains(&expected), "{expected}: {answer}");
    }
}

#[tokio::test]
async fn known_content_is_304() {
    let (gateway, id, _) = with_document("a", CONTENT).await;
    let weak = format!("W/{SHA256}");
    let list = format!("\"x\", {weak}");
    for tags in [SHA256, &weak, &list, "*"] {
        // A range is of no interest to a client that has the whole.
        for headers in [&[("If-None-Match", tags)][..], &[("If-None-Match", tags), ("Range", "bytes=0-1")]] {
            let request = content_request("GET", &id, headers);
            let mut stream = TcpStream::connect(gateway.address).await.unwrap();
            stream.write_all(&request).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 304") && answer.ends_with("\r\n\r\n"), "{tags}: {answer}");
            assert!(answer.contains(&format!("etag: {SHA256}")), "{answer}");
        }
    }
    for tags in ["\"x\"", "", "84d89877", "\"*\""] {
        assert_eq!(gateway.download(&id, &[("If-None-Match", tags)]).await.status, 200, "{tags}");
    }
}

#[tokio::test]
async fn single_range_is_206_and_any_other_is_the_whole() {
    let (gateway, id, _) = with_document("a", CONTENT).await;
    for (range, part, content_range) in [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=0-99", "0123456789", "bytes 0-9/10"),
    ] {
        let reply = gateway.download(&id, &[("Range", range), ("If-Range", SHA256)]).await;
        assert_eq!((reply.status, &reply.body[..]), (206, part.as_bytes()), "{range}");
        assert_eq!(reply.header("content-range"), Some(content_range));
        assert_eq!(reply.header("etag"), Some(SHA256));
    }
    for headers in [
        &[("Range", "bytes=0-1,3-4")][..],
        &[("Range", "bytes=4-2")],
        &[("Range", "lines=1-2")],
        &[("Range", "bytes=0-1"), ("Range", "bytes=0-1")],
        &[("Range", "bytes=0-1"), ("If-Range", "\"x\"")],
    ] {
        let reply = gateway.download(&id, headers).await;
        assert_eq!((reply.status, &reply.body[..]), (200, CONTENT), "{headers:?}");
    }
    for range in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
        let reply = gateway.download(&id, &[("Range", range)]).await;
        reply.expect_error(416);
        assert_eq!(reply.header("content-range"), Some("bytes */10"), "{range}");
    }
}

#[tokio::test]
async fn empty_document_is_downloaded() {
    let (gateway, id, _) = with_document("a", b"").await;
    let reply = gateway.download(&id, &[]).await;
    assert_eq!((reply.status, reply.header("content-length"), reply.body.len()), (200, Some("0"), 0));
}

#[tokio::test]
async fn content_of_other_workspaces_and_for_management_keys_is_denied() {
    let (gateway, id, _) = with_document("a", CONTENT).await;
    let path = format!("/files/{id}/content");
    gateway.get(Caller::OfOtherWorkspace, &path, &[]).await.expect_error(404);
    gateway.get(Caller::Management, &path, &[]).await.expect_error(403);
    gateway.get(Caller::Inference, "/files/tgfile_x/content", &[]).await.expect_error(404);
    gateway.get(Caller::Inference, "/files/..%2fx/content", &[]).await.expect_error(404);
    // A tag does not tell whether the document exists.
    gateway.get(Caller::OfOtherWorkspace, &path, &[("If-None-Match", "*")]).await.expect_error(404);
}

/// Downloads until the server closes; returns what arrived.
async fn read_to_close(gateway: &Gateway, id: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let request = content_request("GET", id, &[]);
    stream.write_all(String::from_utf8(request).unwrap().replace("close", "keep-alive").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn damaged_content_ends_before_its_last_piece() {
    let content: Vec<u8> = (0..300_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let (gateway, id, blobs) = with_document("a", &content).await;
    let mut damaged = content.clone();
    damaged[5] ^= 1;
    blobs.put(&blob(&id), MemoryByteSource::new([damaged]).boxed()).await.unwrap();
    let answer = read_to_close(&gateway, &id).await;
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let arrived = answer.len() - head;
    assert!((1..content.len()).contains(&arrived), "{arrived} bytes of {}", content.len());
    assert!(String::from_utf8_lossy(&answer[..head]).contains("content-length: 300000"), "a client notices");
    // The hash of a part is unknown.
    let part = gateway.download(&id, &[("Range", "bytes=0-3")]).await;
    assert_eq!((part.status, part.body.len()), (206, 4));
}

#[tokio::test]
async fn missing_and_truncated_content_is_500_and_a_deleted_document_404() {
    let (gateway, id, blobs) = with_document("a", CONTENT).await;
    blobs.put(&blob(&id), MemoryByteSource::new([&CONTENT[..4]]).boxed()).await.unwrap();
    for headers in [&[][..], &[("Range", "bytes=0-1")]] {
        gateway.download(&id, headers).await.expect_error(500);
    }
    blobs.delete(&blob(&id)).await.unwrap();
    gateway.download(&id, &[]).await.expect_error(500);
    let bearer = Caller::Inference.bearer();
    let delete = request("DELETE", &format!("{BASE}/files/{id}"), &[("Authorization", &bearer)], b"");
    assert_eq!(exchange(gateway.address, &delete).await.status, 200);
    gateway.download(&id, &[]).await.expect_error(404);
}

/// Begins a download and reads its head only.
async fn begin(gateway: &Gateway, id: &str) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(&content_request("GET", id, &[])).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn unread_download_takes_memory_and_no_place() {
    let admission = AdmissionSettings {
        max_in_flight: 1,
        body_memory_bytes: 2 << 20,
        body_memory_bytes_per_workspace: 2 << 20,
        ..AdmissionSettings::default()
    };
    // More than both ends of a connection buffer.
    let content = vec![7; 32 << 20];
    let (gateway, id, blobs) = with_settings("a", &content, admission).await;
    let unread = [begin(&gateway, &id).await, begin(&gateway, &id).await];
    let record = gateway.get(Caller::Inference, &format!("/files/{id}"), &[]).await;
    assert_eq!(record.status, 200, "the places are free");
    let message = gateway.download(&id, &[]).await.expect_error(503);
    assert!(message.contains("memory"), "the third download finds none: {message}");
    // The document is gone, and who reads it reads on.
    blobs.delete(&blob(&id)).await.unwrap();
    let [mut read, dropped] = unread;
    drop(dropped);
    let mut rest = Vec::new();
    read.read_to_end(&mut rest).await.unwrap();
    assert!(rest.ends_with(&[7; 100]) && rest.len() > content.len());
    blobs.put(&blob(&id), MemoryByteSource::new([&content[..]]).boxed()).await.unwrap();
    let range = [("Range", "bytes=0-1048575")];
    for attempt in 0.. {
        let reply = gateway.download(&id, &range).await;
        if reply.status == 206 {
            break;
        }
        assert!(attempt < 1_000, "the memory is not released: {}", reply.status);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
