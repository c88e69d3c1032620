//! Marks of work that was not finished.

use regex_lite::Regex;

use crate::repo::{Finding, Repo};

pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    // The brackets keep this file from finding itself.
    let mark = Regex::new(r"\btodo[!]\(|\bunimplemented[!]\(|FIX[M]E").expect("a valid pattern");
    let mut findings = Vec::new();
    // Prose may speak of the marks.
    for file in repo.files().filter(|file| !file.path.ends_with(".md")) {
        for (number, line) in file.lines() {
            if let Some(found) = mark.find(line) {
                findings.push(file.finding_at(number, format!("`{}`", found.as_str())));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::shown;

    #[test]
    fn finds_each_mark() {
        let text = ["fn a() { todo", "!() }\n// FIX", "ME later\nfn b() { unimplemented", "!() }"];
        let repo = Repo::of(&[("a.rs", &text.concat())]);
        let marks = ["`todo\u{21}(`", "`FIX\u{4d}E`", "`unimplemented\u{21}(`"];
        let expected: Vec<String> =
            marks.iter().enumerate().map(|(i, mark)| format!("a.rs:{}: {mark}", i + 1)).collect();
        assert_eq!(shown(&check(&repo)), expected);
    }

    #[test]
    fn accepts_finished_code() {
        assert!(check(&Repo::of(&[("a.rs", "fn todo() {}\n// to do: nothing\n")])).is_empty());
    }
}
