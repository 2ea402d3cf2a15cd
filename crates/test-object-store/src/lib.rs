//! An S3-compatible object store that tests start on a free loopback port and stop. It checks signatures, and keeps its
//! objects in a temporary folder.

mod files;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use files::Files;

/// The only access key that the store knows.
pub const ACCESS_KEY_ID: &str = "test-access-key";
/// Its secret.
pub const SECRET_ACCESS_KEY: &str = "test-secret-key";
/// The bucket that exists.
pub const BUCKET: &str = "tollgate-test";

/// A store; it ends when it is dropped.
pub struct ObjectStore {
    folder: TempDir,
    address: SocketAddr,
    /// `None` while the store is stopped.
    running: Option<Runtime>,
}

impl ObjectStore {
    /// Starts a store with an empty bucket.
    pub fn start() -> Result<Self> {
        let folder = TempDir::new()?;
        std::fs::create_dir(folder.path().join(BUCKET))?;
        let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut store = Self { folder, address, running: None };
        store.resume()?;
        Ok(store)
    }

    /// Returns the address for clients.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the folder of the bucket: an object is a file at its name.
    pub fn bucket(&self) -> PathBuf {
        self.folder.path().join(BUCKET)
    }

    /// Returns the folder of the store, in which parts of uploads are hidden files.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Ends the store and all its connections; clients cannot connect.
    pub fn stop(&mut self) {
        if let Some(runtime) = self.running.take() {
            runtime.shutdown_background();
        }
    }

    /// Starts the stopped store again, at the same address and with the same objects.
    pub fn resume(&mut self) -> Result<()> {
        let service = service(self.folder.path(), ACCESS_KEY_ID, SECRET_ACCESS_KEY)?;
        let listener = std::net::TcpListener::bind(self.address).context("the port was taken meanwhile")?;
        listener.set_nonblocking(true)?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.spawn(serve(listener, service));
        self.running = Some(runtime);
        Ok(())
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Serves the buckets in a folder, which may have none yet, until the process ends.
///
/// # Errors
/// The folder cannot be used, or the address is in use.
pub fn serve_folder(address: &str, folder: &Path, access_key_id: &str, secret_access_key: &str) -> Result<()> {
    let service = service(folder, access_key_id, secret_access_key)?;
    let listener = std::net::TcpListener::bind(address).with_context(|| format!("cannot bind {address}"))?;
    listener.set_nonblocking(true)?;
    Builder::new_current_thread().enable_all().build()?.block_on(serve(listener, service))
}

fn service(folder: &Path, access_key_id: &str, secret_access_key: &str) -> Result<S3Service> {
    let files = FileSystem::new(folder).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let mut service = S3ServiceBuilder::new(Files { files, root: folder.to_owned() });
    service.set_auth(SimpleAuth::from_single(access_key_id, secret_access_key));
    Ok(service.build())
}

async fn serve(listener: std::net::TcpListener, service: S3Service) -> Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let handle = tokio::runtime::Handle::current();
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service.clone());
        // The runtime of the store ends all of its tasks.
        handle.spawn(connection);
    }
}
