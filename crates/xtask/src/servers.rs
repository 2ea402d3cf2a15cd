//! The programs of servers that tests start.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::step;

/// A server that tests need.
struct Server {
    /// Returns true if its program is installed.
    is_installed: fn() -> bool,
    /// The packages of Debian that have it, the preferred one first.
    packages: &'static [&'static str],
    /// One line for a machine on which this program may not install packages.
    advice: &'static str,
}

const SERVERS: [Server; 3] = [
    Server {
        is_installed: has_postgres,
        packages: &["postgresql"],
        advice: "the tests need PostgreSQL: `apt-get install postgresql` as root",
    },
    Server {
        is_installed: has_valkey,
        // Debian 12 has Redis only.
        packages: &["valkey-server", "redis-server"],
        advice: "the tests need Valkey or Redis: `apt-get install valkey-server` or `redis-server` as root",
    },
    Server {
        is_installed: has_pooler,
        packages: &["pgbouncer"],
        advice: "the tests need PgBouncer: `apt-get install pgbouncer` as root, or TOLLGATE_TEST_PGBOUNCER=<program>",
    },
];

/// The folder of Debian's packages of PostgreSQL, one per version. The client alone has no `initdb`.
const POSTGRES: &str = "/usr/lib/postgresql";
/// The programs that test-servers looks for.
const VALKEY: [&str; 4] =
    ["/usr/bin/valkey-server", "/usr/bin/redis-server", "/usr/local/bin/valkey-server", "/usr/local/bin/redis-server"];

const POOLER: [&str; 3] = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];

/// Installs missing packages where apt and the rights for it exist.
pub fn install_missing() -> Result<()> {
    SERVERS.iter().filter(|server| !(server.is_installed)()).try_for_each(install)
}

fn install(server: &Server) -> Result<()> {
    step::announce(server.advice);
    // A list of packages that is still good makes the second step enough.
    if !install_any(server.packages) {
        step::run(&mut apt(&["update"]))?;
        install_any(server.packages);
    }
    ensure!((server.is_installed)(), "{}", server.advice);
    Ok(())
}

/// Returns true if PgBouncer exists, or another program is chosen.
#[expect(clippy::disallowed_methods, reason = "a task of the build, not the service: it has no configuration")]
fn has_pooler() -> bool {
    std::env::var_os("TOLLGATE_TEST_PGBOUNCER").is_some() || POOLER.iter().any(|program| Path::new(program).is_file())
}

/// Installs the first package that this release has.
fn install_any(packages: &[&str]) -> bool {
    let install = |package: &&str| step::run(&mut apt(&["install", "--yes", "--no-install-recommends", package]));
    packages.iter().any(|package| install(package).is_ok())
}

fn has_postgres() -> bool {
    let versions = std::fs::read_dir(POSTGRES).into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin/initdb")).any(|program| program.is_file())
}

fn has_valkey() -> bool {
    VALKEY.iter().any(|program| Path::new(program).is_file())
}

fn apt(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    // The run level of a machine that is starting: the package starts no service on the usual port.
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    command
}
