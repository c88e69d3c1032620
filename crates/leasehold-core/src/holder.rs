//! Who holds or waits, for people to read.

use std::{fmt, sync::Arc};

use crate::{defaults::LABEL_BYTES_MAX, error::InvalidArgument};

/// Who made a request: host, process and an optional label.
#[derive(Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HolderInfo {
    host: Arc<str>,
    pid: u32,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    label: Option<Arc<str>>,
}

impl HolderInfo {
    /// This process on this host, without a label.
    #[must_use]
    pub fn here() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { host: host.into(), pid: std::process::id(), label: None }
    }

    /// What a store read back.
    #[must_use]
    pub fn from_parts(host: &str, pid: u32, label: Option<&str>) -> Self {
        Self { host: host.into(), pid, label: label.map(Into::into) }
    }

    /// The same with a label that says what the work is.
    ///
    /// # Errors
    /// [`InvalidArgument`] when the label is empty, longer than 256 bytes or has control
    /// characters.
    pub fn labelled(&self, label: &str) -> Result<Self, InvalidArgument> {
        if label.is_empty() || label.len() > LABEL_BYTES_MAX {
            return Err(InvalidArgument::new(format!(
                "a label of {} bytes is not in 1 ..= {LABEL_BYTES_MAX}",
                label.len()
            )));
        }
        if label.chars().any(char::is_control) {
            return Err(InvalidArgument::new("a label must not have control characters"));
        }
        Ok(Self { host: Arc::clone(&self.host), pid: self.pid, label: Some(label.into()) })
    }

    /// The host's name.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The process id on that host.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The label, when one was given.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

impl fmt::Display for HolderInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {} on {}", self.pid, self.host)?;
        match &self.label {
            Some(label) => write!(f, " ({label})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for HolderInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HolderInfo({self})")
    }
}
