//! Paths of one machine have no place in the tree.

use regex_lite::Regex;

use crate::repo::{File, Finding, Repo};

pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    // The brackets keep this file from finding itself. Whatever stands before the slash must not
    // be part of a longer, relative path.
    let before = r"(?:^|[^A-Za-z0-9_.~-])";
    let never = Regex::new(&format!("{before}(/(?:wor[k]|roo[t])/)")).expect("a valid pattern");
    let home = Regex::new(&format!("{before}(/hom[e]/[A-Za-z0-9_.-]+)")).expect("a valid pattern");
    let mut findings = Vec::new();
    for file in repo.files() {
        for (number, line) in file.lines() {
            let home = home.captures(line).filter(|_| !is_example(file));
            for found in never.captures(line).into_iter().chain(home) {
                findings.push(file.finding_at(number, format!("path of a machine: {}", &found[1])));
            }
        }
    }
    findings
}

/// Documentation and tests may show what a home directory looks like.
fn is_example(file: &File) -> bool {
    file.path.ends_with(".md") || file.path.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::shown;

    #[test]
    fn finds_paths_everywhere_and_homes_in_sources() {
        let planted = concat!("let a = \"/wo", "rk/x\";\nlet b = \"/ho", "me/ann/x\";\n");
        let repo = Repo::of(&[("crates/a/src/lib.rs", planted), ("docs/a.md", planted)]);
        assert_eq!(
            shown(&check(&repo)),
            [
                concat!("crates/a/src/lib.rs:1: path of a machine: /wo", "rk/"),
                concat!("crates/a/src/lib.rs:2: path of a machine: /ho", "me/ann"),
                concat!("docs/a.md:1: path of a machine: /wo", "rk/"),
            ]
        );
    }

    #[test]
    fn accepts_relative_paths() {
        let clean = concat!("target/wo", "rk/x, /var/tmp/x, https://example.org/wo", "rk/x\n");
        assert!(check(&Repo::of(&[("a.rs", clean)])).is_empty());
    }
}
