//! The log of one process: append-only, one write per event, so that a killed process leaves a
//! prefix of what it did.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    sync::{Mutex, PoisonError},
};

use leasehold_core::{Clock as _, SystemClock};

use super::event::{Event, What};

/// The longest line that is read back; a longer one is no event.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Where one process writes what happens to it.
#[derive(Debug)]
pub struct Log {
    process: u32,
    file: Mutex<File>,
    clock: SystemClock,
}

impl Log {
    /// A new log for the process with this number, in the directory of the history.
    ///
    /// # Errors
    /// Those of the file system; also when there is a log of this process already.
    pub fn create(directory: &Path, process: u32) -> io::Result<Self> {
        let path = directory.join(format!("{process}.log"));
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        Ok(Self { process, file: Mutex::new(file), clock: SystemClock::new() })
    }

    /// The number of the process.
    #[must_use]
    pub const fn process(&self) -> u32 {
        self.process
    }

    /// The time now, as events carry it.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.clock.now().0
    }

    /// Writes an event that happens now.
    ///
    /// # Panics
    /// When it cannot be written: a history with holes proves nothing.
    pub fn note(&self, what: What) {
        self.note_at(self.now(), self.process, what);
    }

    /// Writes an event of another process, such as its death, or of another time.
    ///
    /// # Panics
    /// As [`note`](Self::note).
    pub fn note_at(&self, at_us: u64, process: u32, what: What) {
        let mut line = serde_json::to_string(&Event { at_us, process, what }).expect("it is data");
        line.push('\n');
        assert!(line.len() < LINE_BYTES_MAX, "an event of {} bytes", line.len());
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).expect("the log can be written");
    }
}

/// Reads all logs of a history, merged by time. The last line of a log may be torn: its process was
/// killed while it wrote.
///
/// # Errors
/// Those of the file system, and `InvalidData` for a line that is no event.
pub fn read(directory: &Path) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            events.extend(parse(&fs::read_to_string(&path)?)?);
        }
    }
    // Stable: events of one process and one microsecond stay in their order.
    events.sort_by_key(|event| event.at_us);
    Ok(events)
}

fn parse(text: &str) -> io::Result<Vec<Event>> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_is_no_event_and_a_torn_line_before_is_an_error() {
        let whole = r#"{"at_us":7,"process":1,"what":"started"}"#;
        let events = parse(&format!("{whole}\n{}", &whole[..20])).unwrap();
        assert_eq!(events, [Event { at_us: 7, process: 1, what: What::Started }]);
        assert!(parse(&format!("{}\n{whole}\n", &whole[..20])).is_err());
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn logs_are_merged_by_time() {
        let directory = tempfile::tempdir().unwrap();
        let (one, two) = (Log::create(directory.path(), 1), Log::create(directory.path(), 2));
        let (one, two) = (one.unwrap(), two.unwrap());
        one.note_at(30, 1, What::Ended);
        two.note_at(10, 2, What::Started);
        one.note_at(20, 3, What::Continued);
        let times: Vec<u64> =
            read(directory.path()).unwrap().iter().map(|event| event.at_us).collect();
        assert_eq!(times, [10, 20, 30]);
        assert!(Log::create(directory.path(), 2).is_err(), "a log is never written twice");
    }
}
