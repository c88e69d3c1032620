//! Tests wait for events, not for time; a sleep that must be says why.

use regex_lite::Regex;

use crate::repo::{File, Finding, Repo};

pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    // A method `.sleep(` belongs to some clock of ours, `fn sleep(` declares one.
    let sleep = Regex::new(r"(?:^|[^.\w])sleep\(").expect("a valid pattern");
    let declares = Regex::new(r"\bfn sleep\(").expect("a valid pattern");
    let mut findings = Vec::new();
    for file in repo.with_extension("rs").filter(|file| file.path.starts_with("crates/")) {
        let from = first_test_line(file);
        let mut before = "";
        for (number, line) in file.lines() {
            let calls = sleep.is_match(line)
                && !declares.is_match(line)
                && !line.trim_start().starts_with("//");
            if number >= from && calls && !gives_reason(line) && !gives_reason(before) {
                findings.push(file.finding_at(number, "sleeps without `// sleep: <reason>`"));
            }
            before = line;
        }
    }
    findings
}

/// Where the test code of a file begins: `mod tests` comes last in a file.
fn first_test_line(file: &File) -> usize {
    if file.path.contains("/tests/") || file.path.ends_with("/tests.rs") {
        return 1;
    }
    let mut lines = file.lines();
    let tests = lines.find(|(_, line)| line.trim_start().starts_with("mod tests"));
    tests.map_or(usize::MAX, |(number, _)| number)
}

fn gives_reason(line: &str) -> bool {
    line.split_once("// sleep: ").is_some_and(|(_, reason)| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::shown;

    #[test]
    fn finds_sleeps_in_test_code_without_a_reason() {
        let repo = Repo::of(&[
            ("crates/a/tests/t.rs", "thread::sleep(ms(1));\n// sleep:\nsleep(ms(1)).await;\n"),
            ("crates/a/src/lib.rs", "fn f() { sleep(d) }\nmod tests {\n    time::sleep(d)\n}\n"),
        ]);
        let what = "sleeps without `// sleep: <reason>`";
        let places = ["crates/a/tests/t.rs:1", "crates/a/tests/t.rs:3", "crates/a/src/lib.rs:3"];
        assert_eq!(shown(&check(&repo)), places.map(|place| format!("{place}: {what}")));
    }

    #[test]
    fn accepts_reasons_and_clocks_of_our_own() {
        let repo = Repo::of(&[
            ("crates/a/tests/t.rs", "// sleep: paused clock\ntime::sleep(d).await;\n"),
            ("crates/a/tests/u.rs", "thread::sleep(d); // sleep: the child holds it that long\n"),
            ("crates/a/tests/v.rs", "clock.sleep(d);\nfn sleep(d: Duration) {}\n// sleep(d)\n"),
            ("crates/a/src/lib.rs", "fn f() { thread::sleep(d) }\n"),
        ]);
        assert!(check(&repo).is_empty());
    }
}
