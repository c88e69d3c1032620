//! The terminal while the live screen has it.

use std::{
    io::{self, Write as _},
    mem,
};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Another screen, no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// The cursor, the screen as it was.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Of a terminal that does not tell.
const SIZE: (usize, usize) = (80, 24);

/// The terminal in our hands; dropping this gives it back as it was.
pub(super) struct Screen {
    before: Termios,
    entered: bool,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn enter() -> io::Result<Self> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut screen = Self { before, entered: false };
        screen.enter_again()?;
        Ok(screen)
    }

    /// Takes it again after a stop.
    pub(super) fn enter_again(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &raw)?;
        if !mem::replace(&mut self.entered, true) {
            write(ENTER);
        }
        Ok(())
    }

    /// Gives it back.
    pub(super) fn leave(&mut self) {
        if mem::take(&mut self.entered) {
            write(LEAVE);
            // It fails only where the terminal is gone.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &self.before);
        }
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(rustix::stdio::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => SIZE,
        }
    }

    /// Shows lines from the top; what was below is cleared. One write, so that nothing flickers.
    pub(super) fn draw(&self, lines: &[String]) {
        write(&format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n")));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A terminal that has gone away tells so by a signal or at the next key.
fn write(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
