//! A snapshot of the tree, and what a check has to say about it.

use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::Result;

/// The root of the tree: the folder above this package.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask is a folder of the tree")
}

/// Every file of the tree that git tracks or would track, with its text.
pub(crate) struct Repo {
    files: Vec<File>,
}

/// One file; `path` is relative to the root, with `/`.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Repo {
    /// Reads the tree below [`root`]. New files count before they are added, ignored ones do not.
    pub(crate) fn read() -> Result<Self> {
        // CI may run as another user than the one who cloned: only reading is asked for.
        let safe = format!("safe.directory={}", root().display());
        let listed = Command::new("git")
            .args(["-c", &safe, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root())
            .output()?;
        if !listed.status.success() {
            return Err(format!("git ls-files: {}", listed.stderr.escape_ascii()).into());
        }
        let mut paths: Vec<&str> = str::from_utf8(&listed.stdout)?.split_terminator('\0').collect();
        paths.sort_unstable();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let full = root().join(path);
            // Tracked, but deleted and not yet committed; or a link to a file that counts itself.
            if !full.is_file() || full.is_symlink() {
                continue;
            }
            let text = String::from_utf8_lossy(&std::fs::read(full)?).into_owned();
            files.push(File { path: path.to_owned(), text });
        }
        Ok(Self { files })
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File { path: path.into(), text: text.into() };
        Self { files: files.iter().map(file).collect() }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Files whose name ends in `.extension`.
    pub(crate) fn with_extension(&self, extension: &str) -> impl Iterator<Item = &File> {
        let wanted = Some(std::ffi::OsString::from(extension));
        self.files.iter().filter(move |file| Path::new(&file.path).extension() == wanted.as_deref())
    }

    /// Whether `path` names a file, or a folder with a file in it.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    }
}

impl File {
    /// Lines with their numbers, counted from one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    pub(crate) fn finding(&self, what: impl Into<String>) -> Finding {
        Finding { place: self.path.clone(), what: what.into(), is_warning: false }
    }

    pub(crate) fn finding_at(&self, line: usize, what: impl Into<String>) -> Finding {
        let place = format!("{}:{line}", self.path);
        Finding { place, what: what.into(), is_warning: false }
    }
}

/// Something a check does not like.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) place: String,
    pub(crate) what: String,
    /// Shown, but no reason to fail.
    pub(crate) is_warning: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warning = if self.is_warning { "warning: " } else { "" };
        write!(f, "{warning}{}: {}", self.place, self.what)
    }
}

#[cfg(test)]
pub(crate) fn shown(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}
