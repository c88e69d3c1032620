//! The storage that a critical section writes to: it remembers the highest fencing token and
//! refuses a write with a lower one.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    path::Path,
};

/// Writes with a fencing token and says whether the storage took it, and when, as `now` tells: the
/// time is read while no other write can happen.
pub(super) fn write(
    directory: &Path,
    lock: &str,
    fencing: u64,
    now: impl Fn() -> u64,
) -> io::Result<(bool, u64)> {
    let path = directory.join(format!("{lock}.storage"));
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    // Freed with the descriptor, also by death.
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    // A writer that was killed half way left nothing that is a number.
    let highest = text.trim_end().parse().unwrap_or(0);
    let accepted = fencing >= highest;
    if accepted {
        file.rewind()?;
        file.write_all(format!("{fencing:020}\n").as_bytes())?;
    }
    Ok((accepted, now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_fencing_token_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let write = |fencing| write(directory.path(), "x", fencing, || 0).unwrap().0;
        assert_eq!([7, 7, 9, 8, 10].map(write), [true, true, true, false, true]);
    }
}
