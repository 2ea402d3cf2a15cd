//! The blob store on a real object store: the port's contract, and properties of object stores.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters_s3::{BucketCheck, S3BlobStore, S3Credentials, S3Error, S3Settings, create_missing_bucket};
use async_trait::async_trait;
use domain::container::{BlobKey, BlobStore, ByteSource, CopyOutcome, PutBlobError};
use domain::error::StoreError;
use domain::secret::SecretString;
use domain::system::HealthProbe;
use domain::testing::MemoryByteSource;
use domain::testing::contract::Blobs;
use test_object_store::{ACCESS_KEY_ID, BUCKET, ObjectStore, SECRET_ACCESS_KEY};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

fn access_key(id: &str, secret: &str) -> S3Credentials {
    S3Credentials::AccessKey { id: SecretString::new(id), secret: SecretString::new(secret), session_token: None }
}

fn settings(endpoint: &str) -> S3Settings {
    S3Settings {
        bucket: BUCKET.to_owned(),
        prefix: "in/stance".to_owned(),
        endpoint: endpoint.to_owned(),
        region: "us-east-1".to_owned(),
        path_style: true,
        credentials: access_key(ACCESS_KEY_ID, SECRET_ACCESS_KEY),
        ca_file: None,
        connect_timeout: Duration::from_secs(2),
        request_timeout: Duration::from_secs(10),
    }
}

fn open() -> (ObjectStore, S3BlobStore) {
    let server = ObjectStore::start().unwrap();
    let store = S3BlobStore::new(&settings(&server.endpoint())).unwrap();
    (server, store)
}

async fn blobs() -> Blobs {
    let (server, store) = open();
    Blobs { store: Arc::new(store), keep: Box::new(server) }
}

domain::blob_store_contract!(
    #[tokio::test]
    crate::blobs
);

/// The contract once more, with copies that go through the process.
mod large_objects {
    async fn blobs() -> domain::testing::contract::Blobs {
        let (server, store) = super::open();
        let store = std::sync::Arc::new(store.with_max_server_copy_bytes(0));
        domain::testing::contract::Blobs { store, keep: Box::new(server) }
    }

    domain::blob_store_contract!(
        #[tokio::test]
        crate::large_objects::blobs
    );
}

fn key(name: &str) -> BlobKey {
    BlobKey::from_listing(name.to_owned())
}

async fn put(store: &S3BlobStore, name: &str, content: &[u8]) {
    store.put(&key(name), MemoryByteSource::new([content.to_vec()]).boxed()).await.unwrap();
}

/// Returns the names of every file of the store that is no complete object.
fn hidden_parts(server: &ObjectStore) -> Vec<String> {
    let names = std::fs::read_dir(server.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name.contains("upload")).collect()
}

/// A source of equal pieces that never holds the object.
struct Repeated {
    pieces: u32,
    fails: bool,
}

const PIECE: usize = 1 << 20;

#[async_trait]
impl ByteSource for Repeated {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.pieces.checked_sub(1) {
            None if self.fails => Err(StoreError::unavailable("the source broke off")),
            None => Ok(None),
            Some(left) => {
                self.pieces = left;
                Ok(Some(vec![b'x'; PIECE]))
            }
        }
    }
}

#[tokio::test]
async fn objects_are_below_the_prefix_and_other_objects_are_not_listed() {
    let (server, store) = open();
    put(&store, "documents/w/a", b"content").await;
    assert_eq!(std::fs::read(server.bucket().join("in/stance/documents/w/a")).unwrap(), b"content");
    for other in ["documents/w/b", "in/stance2/documents/w/c", "in/other"] {
        let path = server.bucket().join(other);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"other").unwrap();
    }
    for prefix in ["", "documents/"] {
        let listed = store.list(prefix, None, 10).await.unwrap();
        assert_eq!(listed.iter().map(|meta| meta.key.as_str()).collect::<Vec<_>>(), ["documents/w/a"]);
    }
    let whole = S3BlobStore::new(&S3Settings { prefix: String::new(), ..settings(&server.endpoint()) }).unwrap();
    assert_eq!(whole.list("", None, 10).await.unwrap().len(), 4);
    assert_eq!(whole.stat(&key("in/stance/documents/w/a")).await.unwrap().unwrap().size_bytes, 7);
}

#[tokio::test]
async fn large_object_is_written_in_parts_and_leaves_none_when_its_source_fails() {
    let (server, store) = open();
    for fails in [false, true] {
        let name = key(&format!("documents/w/{fails}"));
        let result = store.put(&name, Box::new(Repeated { pieces: 19, fails })).await;
        assert_eq!(result.is_err(), fails, "{result:?}");
        let size = store.stat(&name).await.unwrap().map(|meta| meta.size_bytes);
        assert_eq!(size, (!fails).then_some(19 << 20));
        assert_eq!(hidden_parts(&server), [""; 0], "parts are left behind");
    }
    let copied = store.copy(&key("documents/w/false"), &key("documents/w/copy"), 19 << 20).await.unwrap();
    let CopyOutcome::Copied(copied) = copied else { panic!("{copied:?}") };
    assert_eq!(copied.head, vec![b'x'; domain::container::CopiedBlob::HEAD_BYTES]);
}

/// Peak resident memory of this process, in KiB.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn large_object_needs_little_memory() {
    let (_server, store) = open();
    let before = peak_memory();
    store.put(&key("containers/w/c/a"), Box::new(Repeated { pieces: 300, fails: false })).await.unwrap();
    for store in [store.clone(), store.with_max_server_copy_bytes(0)] {
        let copied = store.copy(&key("containers/w/c/a"), &key("documents/w/a"), 300 << 20).await.unwrap();
        assert!(matches!(copied, CopyOutcome::Copied(_)));
    }
    // The store under test and the one that it calls are in this process, and the cases of the contract beside them.
    let grown = peak_memory() - before;
    assert!(grown < 200 * 1024, "{grown} KiB more were needed");
}

#[tokio::test]
async fn writer_that_replaces_the_source_during_a_copy_leaves_one_version() {
    let (_server, store) = open();
    let content = |byte: u8| vec![byte; 3 << 20];
    put(&store, "containers/w/c/a", &content(b'0')).await;
    for round in b'1'..b'6' {
        let (from, to) = (key("containers/w/c/a"), key(&format!("documents/w/{round}")));
        let replacement = content(round);
        let (copied, ()) = tokio::join!(store.copy(&from, &to, 3 << 20), put(&store, "containers/w/c/a", &replacement));
        let CopyOutcome::Copied(copied) = copied.unwrap() else { continue };
        let mut open = store.read(&to, None).await.unwrap().unwrap();
        let mut kept = Vec::new();
        while let Some(piece) = open.source.next().await.unwrap() {
            kept.extend(piece);
        }
        assert!(kept == content(kept[0]) && kept[..10] == copied.head[..10], "a mixture of versions was kept");
    }
}

#[tokio::test]
async fn invalid_keys_count_as_absent() {
    let (_server, store) = open();
    let long = format!("containers/w/c/{}", "x".repeat(1_024));
    for name in ["../secret", "containers/../../secret", "/etc/passwd", "", "a//b", "a/./b", "a\0b", "a/", &long] {
        assert_eq!(store.stat(&key(name)).await.unwrap(), None, "{name:?}");
        let refused = store.put(&key(name), MemoryByteSource::new(["x"]).boxed()).await;
        assert!(matches!(refused, Err(PutBlobError::NameTooLong)), "{name:?}");
        store.delete(&key(name)).await.unwrap();
    }
    assert_eq!(store.list("", None, 100).await.unwrap(), []);
}

/// Calls every operation on an object and returns the failures as texts.
async fn failures(store: &S3BlobStore) -> Vec<String> {
    let a = key("documents/w/a");
    let source = MemoryByteSource::new(["x"]).boxed();
    let results = [
        store.stat(&a).await.err(),
        store.copy(&a, &key("documents/w/b"), 1).await.err(),
        store.put(&a, source).await.err().map(StoreError::from),
        store.read(&a, None).await.err(),
        store.delete(&a).await.err(),
        store.list("documents/", None, 1).await.err(),
        store.probe().await.err(),
    ];
    let failure = |error: Option<StoreError>| match error {
        Some(StoreError::Unavailable(cause)) => cause.to_string(),
        other => panic!("not unavailable: {other:?}"),
    };
    results.into_iter().map(failure).collect()
}

#[tokio::test]
async fn missing_bucket_and_wrong_credentials_are_never_an_absent_object() {
    let (server, _) = open();
    let good = settings(&server.endpoint());
    for (settings, expected) in [
        (S3Settings { bucket: "other-bucket".to_owned(), ..good.clone() }, "NoSuchBucket"),
        (
            S3Settings { credentials: access_key(ACCESS_KEY_ID, "wrong-secret"), ..good.clone() },
            "SignatureDoesNotMatch",
        ),
        (S3Settings { credentials: access_key("wrong-id", SECRET_ACCESS_KEY), ..good }, "403"),
    ] {
        let store = S3BlobStore::new(&settings).unwrap();
        let text = match store.check_bucket().await {
            BucketCheck::Missing(text) | BucketCheck::Rejected(text) => text,
            other => panic!("{expected} is not rejected: {other:?}"),
        };
        assert!(text.contains(expected), "{text}");
        for text in failures(&store).await {
            let secrets = ["wrong-secret", SECRET_ACCESS_KEY, "Signature="];
            assert!(text.contains("object store") && !secrets.iter().any(|secret| text.contains(secret)), "{text}");
        }
        let shown = format!("{settings:?}");
        let secrets = ["wrong-", ACCESS_KEY_ID, SECRET_ACCESS_KEY];
        assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{shown}");
    }
}

#[tokio::test]
async fn outage_is_unavailable_soon_and_ends_without_a_new_store() {
    let (mut server, store) = open();
    put(&store, "documents/w/a", b"kept").await;
    assert!(matches!(store.check_bucket().await, BucketCheck::Accessible));
    server.stop();
    let since = Instant::now();
    assert!(matches!(store.check_bucket().await, BucketCheck::Unavailable(_)));
    for text in failures(&store).await {
        assert!(text.contains("cannot connect") || text.contains("in time"), "{text}");
    }
    assert!(since.elapsed() < Duration::from_secs(40), "{:?}", since.elapsed());
    server.resume().unwrap();
    store.probe().await.unwrap();
    assert_eq!(store.stat(&key("documents/w/a")).await.unwrap().unwrap().size_bytes, 4);
}

#[tokio::test]
async fn store_that_never_answers_is_unavailable_within_the_limits() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let limited = S3Settings { request_timeout: Duration::from_millis(100), ..settings(&endpoint) };
    let store = S3BlobStore::new(&limited).unwrap();
    let since = Instant::now();
    let error = store.stat(&key("documents/w/a")).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Unavailable(cause) if cause.to_string().contains("within 100 ms")),
        "{error:?}"
    );
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
}

/// A bucket that was away and returned between two answers.
#[tokio::test]
async fn object_that_is_listed_is_never_absent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = S3BlobStore::new(&settings(&format!("http://{}", listener.local_addr().unwrap()))).unwrap();
    let list = "<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated><Contents>\
                <Key>in/stance/documents/w/a</Key><LastModified>2026-11-26T00:00:00.000Z</LastModified>\
                <ETag>\"x\"</ETag><Size>4</Size></Contents></ListBucketResult>";
    let serve = async {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            let is_list = String::from_utf8_lossy(&head).contains("list-type=2");
            let (status, body) = if is_list { ("200 OK", list) } else { ("404 Not Found", "") };
            let length = body.len();
            let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    };
    let found = async {
        let stat = store.stat(&key("documents/w/a")).await;
        (stat, store.read(&key("documents/w/a"), None).await.map(|found| found.is_some()))
    };
    tokio::select! {
        () = serve => {}
        (stat, read) = found => {
            assert!(matches!(stat, Err(StoreError::Unavailable(_))), "{stat:?}");
            assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
        }
    }
}

/// Answers every request with these credentials, after a check of its head, and counts the requests.
async fn serve_credentials(answer: String, expected: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    #[expect(clippy::disallowed_methods, reason = "the task ends with the test's runtime")]
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            counted.fetch_add(1, Ordering::Relaxed);
            let is_expected = String::from_utf8_lossy(&head).contains(expected);
            let status = if is_expected { "200 OK" } else { "403 Forbidden" };
            let length = answer.len();
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            socket.write_all((head + &answer).as_bytes()).await.unwrap();
        }
    });
    (address, requests)
}

#[tokio::test]
async fn web_identity_and_pod_tokens_are_exchanged_for_credentials_once() {
    let (server, _) = open();
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "identity-token").unwrap();
    let expiration = "2999-01-01T00:00:00Z";
    let identity = format!(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
         <AccessKeyId>{ACCESS_KEY_ID}</AccessKeyId><SecretAccessKey>{SECRET_ACCESS_KEY}</SecretAccessKey>\
         <SessionToken>session</SessionToken><Expiration>{expiration}</Expiration>\
         </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    );
    let pod = format!(
        r#"{{"AccessKeyId":"{ACCESS_KEY_ID}","SecretAccessKey":"{SECRET_ACCESS_KEY}","Token":"session",
            "Expiration":"{expiration}"}}"#
    );
    let (endpoint, exchanges) = serve_credentials(identity, "WebIdentityToken=identity-token").await;
    let (uri, fetches) = serve_credentials(pod, "authorization: identity-token").await;
    let role_arn = "arn:aws:iam::1:role/tollgate".to_owned();
    let session_name = "tollgate".to_owned();
    for (credentials, requests) in [
        (S3Credentials::WebIdentity { token_file: token_file.clone(), role_arn, session_name, endpoint }, exchanges),
        (S3Credentials::Pod { uri, token_file: token_file.clone() }, fetches),
    ] {
        let store = S3BlobStore::new(&S3Settings { credentials, ..settings(&server.endpoint()) }).unwrap();
        put(&store, "documents/w/a", b"content").await;
        assert_eq!(store.stat(&key("documents/w/a")).await.unwrap().unwrap().size_bytes, 7);
        assert_eq!(requests.load(Ordering::Relaxed), 1);
    }
    std::fs::write(&token_file, "other-token").unwrap();
    let (endpoint, _) = serve_credentials("<Code>AccessDenied</Code>".to_owned(), "no request has this").await;
    let credentials = S3Credentials::WebIdentity {
        token_file,
        role_arn: "role".to_owned(),
        session_name: "tollgate".to_owned(),
        endpoint,
    };
    let store = S3BlobStore::new(&S3Settings { credentials, ..settings(&server.endpoint()) }).unwrap();
    let BucketCheck::Rejected(text) = store.check_bucket().await else { panic!("it is not rejected") };
    assert!(text.contains("403 AccessDenied") && !text.contains("other-token"), "{text}");
}

#[tokio::test]
async fn missing_bucket_is_created_once_and_its_region_is_named() {
    let (server, _) = open();
    for (bucket, region) in [("missing", "us-east-1"), ("missing.in.europe", "eu-central-1")] {
        let missing =
            S3Settings { bucket: bucket.to_owned(), region: region.to_owned(), ..settings(&server.endpoint()) };
        let store = S3BlobStore::new(&missing).unwrap();
        let BucketCheck::Missing(text) = store.check_bucket().await else { panic!("{bucket} exists") };
        assert!(text.contains("404 NoSuchBucket") && text.contains("--create-bucket"), "{text}");
        let (first, second) = tokio::join!(create_missing_bucket(&missing), create_missing_bucket(&missing));
        // Two processes may start at the same time; both see the bucket afterwards.
        assert!(first.unwrap() || second.unwrap(), "{bucket}");
        assert!(matches!(store.check_bucket().await, BucketCheck::Accessible));
        assert!(!create_missing_bucket(&missing).await.unwrap(), "{bucket} exists");
        put(&store, "documents/w/a", b"content").await;
    }
}

#[tokio::test]
async fn bucket_that_cannot_be_created_is_an_error_without_secrets() {
    let (mut server, _) = open();
    let missing = S3Settings { bucket: "missing".to_owned(), ..settings(&server.endpoint()) };
    let wrong = S3Settings { credentials: access_key(ACCESS_KEY_ID, "other-secret"), ..missing.clone() };
    let error = create_missing_bucket(&wrong).await.unwrap_err().to_string();
    assert!(error.contains("403 SignatureDoesNotMatch"), "{error}");
    server.stop();
    let error = create_missing_bucket(&missing).await.unwrap_err();
    let S3Error::LookUp(StoreError::Unavailable(cause)) = error else { panic!("{error}") };
    let cause = cause.to_string();
    assert!(cause.contains("cannot connect") && !cause.contains("Signature"), "{cause}");
    // A service that does not allow the creation.
    let endpoint = serve_missing_bucket().await;
    let error = create_missing_bucket(&S3Settings { endpoint, ..missing }).await.unwrap_err().to_string();
    assert_eq!(error, "the bucket cannot be created: 403 AccessDenied: no");
}

/// Answers PUT with 403 and other requests with 404.
async fn serve_missing_bucket() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "the task ends with the test's runtime")]
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            let (status, error) = if head.starts_with(b"PUT ") {
                ("403 Forbidden", "<Code>AccessDenied</Code><Message>no</Message>")
            } else {
                ("404 Not Found", "<Code>NoSuchBucket</Code>")
            };
            let length = error.len();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{error}");
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn settings_that_cannot_work_are_rejected() {
    let good = settings("https://127.0.0.1:1");
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    for (settings, expected) in [
        (S3Settings { prefix: "a//b".to_owned(), ..good.clone() }, "prefix"),
        (S3Settings { ca_file: Some(folder.path().join("absent.pem")), ..good.clone() }, "absent.pem"),
        (S3Settings { ca_file: Some(empty), ..good }, "no certificate authority"),
    ] {
        let error = S3BlobStore::new(&settings).map(drop).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
