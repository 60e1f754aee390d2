//! Reads a line that the terminal does not show.

use std::io::{self, BufRead as _};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// A line of standard input, which is a terminal.
///
/// # Errors
/// When it can't be read, or its echo not be switched off.
pub(super) fn line() -> io::Result<String> {
    let terminal = rustix::stdio::stdin();
    let before = tcgetattr(terminal)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(terminal, OptionalActions::Flush, &silent)?;
    let mut text = String::new();
    let read = io::stdin().lock().read_line(&mut text);
    tcsetattr(terminal, OptionalActions::Flush, &before)?;
    read.map(|_| text)
}
