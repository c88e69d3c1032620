//! Where a password comes from.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use leasehold_core::{Fault, FaultKind};

/// The largest password file in bytes.
const PASSWORD_BYTES_MAX: u64 = 64 * 1024;

/// Where the password comes from.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Password {
    None,
    Given(String),
    File(PathBuf),
    Variable(String),
}

impl Password {
    /// The password as it is now; `variable` is the parameter that names one.
    pub(super) fn current(&self, variable: &str) -> Result<Option<String>, Fault> {
        match self {
            Self::None => Ok(None),
            Self::Given(password) => Ok(Some(password.clone())),
            Self::File(path) => read_password(path).map(Some),
            Self::Variable(name) => match std::env::var(name) {
                Ok(password) => Ok(Some(password)),
                Err(_) => Err(Fault::new(
                    FaultKind::Denied,
                    format!("the environment variable that {variable} names is not set"),
                )),
            },
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Given(_) => f.write_str("Given"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            // Whoever takes the name for the password has written it here.
            Self::Variable(_) => f.write_str("Variable"),
        }
    }
}

fn read_password(path: &Path) -> Result<String, Fault> {
    let fault = |error: std::io::Error| {
        let message = format!("the password file {} cannot be read: {error}", path.display());
        Fault::new(FaultKind::Denied, message).with_source(error)
    };
    let length = std::fs::metadata(path).map_err(fault)?.len();
    if length > PASSWORD_BYTES_MAX {
        return Err(fault(std::io::Error::other("it is too large")));
    }
    let mut password = std::fs::read_to_string(path).map_err(fault)?;
    if password.ends_with('\n') {
        password.pop();
        if password.ends_with('\r') {
            password.pop();
        }
    }
    Ok(password)
}
