//! Files that a newcomer can still read in one go.

use crate::repo::{Finding, Repo};

const RUST_LINES_MAX: usize = 600;
const PAGE_LINES_MAX: usize = 150;
/// The pages a newcomer reads first.
const PAGES: [&str; 2] = ["README.md", "ARCHITECTURE.md"];

pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let rust = repo.with_extension("rs").map(|file| (file, RUST_LINES_MAX));
    let pages = PAGES.iter().filter_map(|path| repo.file(path)).map(|file| (file, PAGE_LINES_MAX));
    rust.chain(pages)
        .filter_map(|(file, lines_max)| {
            let lines = file.text.lines().count();
            (lines > lines_max).then(|| file.finding(format!("{lines} lines, at most {lines_max}")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::shown;

    #[test]
    fn finds_long_sources_and_long_first_pages_only() {
        let (rust, page) = ("x\n".repeat(601), "x\n".repeat(151));
        let repo = Repo::of(&[("a.rs", &rust), ("README.md", &page), ("docs/long.md", &rust)]);
        assert_eq!(
            shown(&check(&repo)),
            ["a.rs: 601 lines, at most 600", "README.md: 151 lines, at most 150"]
        );
    }

    #[test]
    fn accepts_the_limits() {
        let (rust, page) = ("x\n".repeat(600), "x\n".repeat(150));
        assert!(check(&Repo::of(&[("a.rs", &rust), ("ARCHITECTURE.md", &page)])).is_empty());
    }
}
