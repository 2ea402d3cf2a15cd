//! Child processes: start, observation through /proc, and termination.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};

/// A process of this binary in one of its server roles. Dropping this value kills it.
pub struct Helper {
    child: Child,
    /// Keeps the process's standard output open.
    _output: BufReader<ChildStdout>,
    /// The address that it listens on.
    pub address: SocketAddr,
}

impl Helper {
    /// Starts a role and waits until it prints its address.
    pub async fn start(role: &[&str]) -> Result<Self> {
        let this = std::env::current_exe()?;
        let mut child = Command::new(this).args(role).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let mut output = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut line = String::new();
        output.read_line(&mut line).await?;
        let address = line.trim().parse().with_context(|| format!("{role:?} did not say where it listens"))?;
        Ok(Self { child, _output: output, address })
    }

    /// Returns its process id.
    pub fn pid(&self) -> Result<u32> {
        self.child.id().context("a helper process has ended")
    }
}

/// Sends SIGTERM to a child and waits for its exit.
pub async fn terminate(child: &mut Child) -> Result<()> {
    if let Some(pid) = child.id() {
        Command::new("kill").args(["-TERM", &pid.to_string()]).status().await?;
        let Ok(status) = tokio::time::timeout(Duration::from_secs(30), child.wait()).await else {
            child.kill().await?;
            bail!("the server did not end within 30 s of SIGTERM");
        };
        let status = status?;
        if !status.success() {
            bail!("the server ended with {status} after SIGTERM");
        }
    }
    Ok(())
}

/// Returns the resident memory in KiB.
pub fn rss_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Returns the number of open file descriptors.
pub fn descriptors(pid: u32) -> Result<u64> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64)
}

/// Returns the number of threads.
pub fn threads(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:")).context("no number of threads")?;
    Ok(line.trim().parse()?)
}

/// Returns the processor time used so far, in user and kernel mode.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = Stat::read(pid)?;
    Ok(stat.own)
}

/// Returns the processor time used so far by a process and its children, ended ones included.
pub fn cpu_time_with_children(pid: u32) -> Result<Duration> {
    let parent = Stat::read(pid)?;
    let mut sum = parent.own + parent.ended_children;
    for entry in fs::read_dir("/proc")? {
        let child = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        // A process may end between the listing and the read.
        if let Some(stat) = child.and_then(|child| Stat::read(child).ok())
            && stat.parent == pid
        {
            sum += stat.own + stat.ended_children;
        }
    }
    Ok(sum)
}

/// The used part of `/proc/PID/stat`.
struct Stat {
    parent: u32,
    own: Duration,
    ended_children: Duration,
}

impl Stat {
    fn read(pid: u32) -> Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may contain spaces and parentheses.
        let (_, rest) = text.rsplit_once(") ").context("no process name")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |index: usize| {
            let field = fields.get(index).and_then(|field| field.parse::<u64>().ok());
            field.with_context(|| format!("no field {index} in the status of {pid}"))
        };
        // A tick is 10 ms on all common Linux platforms.
        let time = |user, kernel| Ok::<_, anyhow::Error>(Duration::from_millis((number(user)? + number(kernel)?) * 10));
        Ok(Self { parent: number(1)?.try_into()?, own: time(11, 12)?, ended_children: time(13, 14)? })
    }
}

/// Returns the peak resident memory of `pid`, in KiB, while `work` runs.
pub async fn peak_while<T>(pid: u32, work: impl Future<Output = Result<T>>) -> Result<(T, u64)> {
    tokio::pin!(work);
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let mut peak = 0;
    loop {
        tokio::select! {
            done = &mut work => return done.map(|value| (value, peak.max(rss_kib(pid).unwrap_or(0)))),
            _ = ticks.tick() => peak = peak.max(rss_kib(pid)?),
        }
    }
}

/// Copies a file as `cp` does, then syncs it to the disk.
pub async fn plain_copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("--reflink=never").arg(from).arg(to).status().await?;
    if !status.success() {
        bail!("cp failed");
    }
    tokio::fs::File::open(to).await?.sync_all().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_figures_are_above_zero() {
        let pid = std::process::id();
        assert!(rss_kib(pid).unwrap() > 100);
        assert!(descriptors(pid).unwrap() > 0 && threads(pid).unwrap() > 0);
        // The time goes on between the two readings.
        let own = cpu_time(pid).unwrap();
        assert!(own < Duration::from_hours(1) && cpu_time_with_children(pid).unwrap() >= own);
    }

    #[tokio::test]
    async fn plain_copy_copies_all_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&from, b"bytes").unwrap();
        plain_copy(&from, &to).await.unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"bytes");
        assert!(plain_copy(&folder.path().join("absent"), &to).await.is_err());
    }
}
