//! The terminal of a command.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// Reads a line from the terminal at standard input without showing it, and returns it without surrounding white space.
///
/// # Errors
/// Standard input is no terminal, or cannot be read.
pub fn read_hidden_line() -> io::Result<String> {
    let stdin = io::stdin();
    let shown = tcgetattr(&stdin)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    hidden.local_modes.insert(LocalModes::ECHONL);
    tcsetattr(&stdin, OptionalActions::Flush, &hidden)?;
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    tcsetattr(&stdin, OptionalActions::Flush, &shown)?;
    read?;
    Ok(line.trim().to_owned())
}
