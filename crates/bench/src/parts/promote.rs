//! Promotion of a large file, compared with `cp` and an fsync of the copy on the same file system.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::bench::{Bench, mib};
use crate::clock::now;
use crate::http::{self, call_once};
use crate::process::{peak_while, plain_copy, rss_kib};
use crate::report::{Bound, Figure};

const MIB: u64 = 1024 * 1024;

/// Measures one or two file sizes.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let (size, rounds) = if bench.quick { (256 * MIB, 2) } else { (1024 * MIB, 3) };
    let mut figures = measure_size(bench, size, rounds).await?;
    if bench.large {
        figures.extend(measure_size(bench, 5_000_000_000, 1).await?);
    }
    Ok(figures)
}

async fn measure_size(bench: &Bench, size: u64, rounds: usize) -> Result<Vec<Figure>> {
    let original = bench.gateway.folder().join("original");
    let copy = bench.gateway.folder().join("copy");
    write_file(&original, size)?;
    let file = put(bench, &original, size).await?;
    let pid = bench.gateway.pid()?;
    let before = rss_kib(pid)?;
    let (mut promoted, mut copied, mut peak) = (Vec::new(), Vec::new(), 0);
    for round in 0..rounds {
        // The order alternates between rounds.
        for copies in [round % 2 == 0, round % 2 != 0] {
            if copies {
                let began = now();
                plain_copy(&original, &copy).await?;
                copied.push(began.elapsed().as_secs_f64());
                tokio::fs::remove_file(&copy).await?;
            } else {
                let (took, most) = peak_while(pid, promote(bench, &file, size)).await?;
                promoted.push(took);
                peak = peak.max(most);
            }
        }
    }
    tokio::fs::remove_file(&original).await?;
    let after = rss_kib(pid)?;
    let name = format!("promote {} MiB", size / MIB);
    Ok(vec![
        Figure::compared(name.clone(), "s", &promoted, ("cp and fsync", &copied)),
        Figure::single(format!("{name}, resident memory before"), "MiB", mib(before)),
        // Constant: a few buffers, for any file size.
        Figure::single(format!("{name}, resident memory added at most"), "MiB", mib(peak) - mib(before))
            .with_bound(Bound::AtMost(16.0)),
        Figure::single(format!("{name}, resident memory after"), "MiB", mib(after)),
    ])
}

/// Writes incompressible bytes.
fn write_file(path: &Path, size: u64) -> Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = Vec::with_capacity(1024 * 1024);
    while block.len() < 1024 * 1024 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        block.extend(state.to_le_bytes());
    }
    let mut file = std::fs::File::create(path)?;
    let mut left = size;
    while left > 0 {
        // No two blocks are equal.
        block[..8].copy_from_slice(&left.to_le_bytes());
        let length = left.min(MIB);
        file.write_all(&block[..usize::try_from(length)?])?;
        left -= length;
    }
    Ok(file.sync_all()?)
}

/// A container file and the path that promotes it.
struct ContainerFile {
    path: String,
}

async fn put(bench: &Bench, original: &Path, size: u64) -> Result<ContainerFile> {
    let name = format!("out/{size}.bin");
    let original = original.to_string_lossy();
    let made = bench.gateway.command(&["container", "put", "sess_bench", &name, &original]).await?;
    let file_id = made.get("id").and_then(Value::as_str).context("container put gave no id")?;
    Ok(ContainerFile { path: format!("/api/v1/containers/sess_bench/files/{file_id}/promote") })
}

async fn promote(bench: &Bench, file: &ContainerFile, size: u64) -> Result<f64> {
    let request = http::request("POST", &file.path, &bench.gateway.inference_key, None);
    let began = now();
    let answer = call_once(bench.gateway.address, &request).await?;
    let took = began.elapsed().as_secs_f64();
    let answer: Value = serde_json::from_slice(&answer)?;
    if answer["size_bytes"] != size {
        bail!("not the whole file was promoted: {answer}");
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_file_writes_requested_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        write_file(&path, MIB + 5).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), MIB + 5);
    }
}
