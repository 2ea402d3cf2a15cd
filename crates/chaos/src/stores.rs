//! The servers that the replicas share: the database with its standby, the object store, and the server of rate limits.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;
use test_object_store::{BUCKET, ObjectStore};
use test_servers::{FaultyPostgres, Valkey};
use tokio::task::block_in_place;
use tokio::time::sleep;
use tollgate_tests::{Network, Relay};

use crate::disk::SmallDisk;

/// The beginning of the names of all objects.
const PREFIX: &str = "chaos";
/// The disk of the database, and what a long run adds to it for each second of a fault.
const DISK_MEBIBYTES: u32 = 512;
const DISK_MEBIBYTES_PER_SECOND: u32 = 2;
/// The time for which the standby receives nothing before it takes over. It is shorter than the retention of folded
/// segments: what was folded meanwhile is still in the journals.
const LAG: Duration = Duration::from_millis(1_500);

/// The shared servers.
pub struct Stores {
    /// The database.
    pub database: FaultyPostgres,
    /// Its standby, if a fault of the run needs one.
    pub standby: Option<Standby>,
    /// The disk of the database, if this user may mount one. The database ends first.
    pub disk: Option<SmallDisk>,
    /// The object store.
    pub objects: ObjectStore,
    /// The server of rate limits.
    pub rates: Valkey,
    _folder: TempDir,
}

/// An asynchronous standby of the database, with a disk of its own.
pub struct Standby {
    server: FaultyPostgres,
    network: Relay,
    disk: Option<SmallDisk>,
}

/// Returns the URL of the blobs.
pub fn blobs_url() -> String {
    format!("s3://{BUCKET}/{PREFIX}")
}

impl Stores {
    /// Starts the servers.
    pub async fn start(fault: Duration, has_standby: bool) -> Result<Self> {
        // The user of PostgreSQL reaches the disks in it.
        let readable = Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().prefix("tollgate-chaos-").permissions(readable).tempdir()?;
        let (disk, parent) = mount(&folder, "database", fault)?;
        let database = block_in_place(|| FaultyPostgres::start_below(&parent))?;
        let standby = if has_standby { Some(Standby::start(&database, &folder, fault).await?) } else { None };
        let (objects, rates) = block_in_place(|| anyhow::Ok((ObjectStore::start()?, Valkey::start()?)))?;
        Ok(Self { database, standby, disk, objects, rates, _folder: folder })
    }

    /// Returns the folder of the objects of documents.
    pub fn documents(&self) -> PathBuf {
        self.objects.bucket().join(PREFIX).join("documents")
    }

    /// Moves the bucket away.
    pub fn remove_bucket(&self) -> Result<()> {
        Ok(std::fs::rename(self.objects.bucket(), self.removed_bucket())?)
    }

    /// Moves the bucket back.
    pub fn return_bucket(&self) -> Result<()> {
        Ok(std::fs::rename(self.removed_bucket(), self.objects.bucket())?)
    }

    fn removed_bucket(&self) -> PathBuf {
        self.objects.folder().join("removed-bucket")
    }
}

/// Mounts the disk of a server of a database, if this user may. Returns it and the folder below which the server starts.
fn mount(folder: &TempDir, name: &str, fault: Duration) -> Result<(Option<SmallDisk>, PathBuf)> {
    let seconds = u32::try_from(fault.as_secs()).unwrap_or(u32::MAX);
    let mebibytes = DISK_MEBIBYTES.saturating_add(DISK_MEBIBYTES_PER_SECOND.saturating_mul(seconds));
    let disk = SmallDisk::mount_for_all(&folder.path().join(name), mebibytes)?;
    let parent = disk.as_ref().map_or_else(std::env::temp_dir, |disk| disk.path().to_owned());
    Ok((disk, parent))
}

impl Standby {
    async fn start(database: &FaultyPostgres, folder: &TempDir, fault: Duration) -> Result<Self> {
        let network = Relay::start(database.address().parse()?).await?;
        let (disk, parent) = mount(folder, "standby", fault)?;
        let server = block_in_place(|| FaultyPostgres::start_standby_below(&parent, network.address()))?;
        Ok(Self { server, network, disk })
    }

    /// Waits until the standby has everything of now.
    pub fn wait_for(&self, database: &FaultyPostgres) -> Result<()> {
        block_in_place(|| self.server.wait_for(database)).context("the standby does not follow")
    }

    /// Lets the standby fall behind: it receives nothing for the time that passes.
    pub async fn lag(&self) {
        self.network.set(Network::Frozen);
        sleep(LAG).await;
    }

    /// Takes over from the killed database. Returns the server and its disk.
    pub fn promote(self) -> Result<(FaultyPostgres, Option<SmallDisk>)> {
        self.network.set(Network::Cut);
        block_in_place(|| self.server.promote())?;
        Ok((self.server, self.disk))
    }
}
