//! Signals to processes of servers.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// Returns the ids of the processes that a process has started.
pub(crate) fn children(process: u32) -> anyhow::Result<Vec<u32>> {
    let list = Path::new("/proc").join(process.to_string()).join("task").join(process.to_string()).join("children");
    let text = std::fs::read_to_string(&list).with_context(|| format!("{} is not readable", list.display()))?;
    text.split_whitespace().map(|id| Ok(id.parse()?)).collect()
}

/// Sends a signal. A process that has ended since it was listed is no error.
pub(crate) fn signal(name: &str, processes: &[u32]) -> anyhow::Result<()> {
    let mut script = String::new();
    for process in processes {
        writeln!(script, "kill -{name} {process} 2>/dev/null")?;
    }
    Command::new("sh").args(["-c", &script]).status().context("no signal was sent")?;
    Ok(())
}

/// Returns the letter with which the kernel names the state of a process; `None` if it does not exist.
fn state(process: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain spaces and parentheses.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Returns true if a process has ended, although its parent may not know it yet.
pub(crate) fn has_ended(process: u32) -> bool {
    matches!(state(process), None | Some('Z'))
}

#[cfg(test)]
pub(crate) fn wait_for_state(process: u32, expected: &[char]) {
    for _ in 0..200 {
        if state(process).is_some_and(|state| expected.contains(&state)) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("process {process} is {:?}, not {expected:?}", state(process));
}
