//! `docs/acceptance.md` lists every behaviour once, and the tests it names exist.
//!
//! A line of it begins with its ids, in a table (`| AL1, AL2 | … |`) or in a list (`- AL1 …`), and
//! cites tests in backticks: `test_name`, `crate::file::test_name`, or the name of a kit case.

use std::collections::{BTreeMap, HashSet};

use regex_lite::Regex;

use crate::repo::{File, Finding, Repo};

const PAGE: &str = "docs/acceptance.md";
/// How many lines each family has.
const FAMILIES: [(&str, u32); 14] = [
    ("AL", 8),
    ("AK", 11),
    ("AO", 22),
    ("AR", 14),
    ("AE", 2),
    ("P", 5),
    ("S", 21),
    ("ST", 5),
    ("SL", 17),
    ("R", 21),
    ("RT", 5),
    ("G", 16),
    ("NL", 11),
    ("N", 39),
];

/// The reports from the field, which have gaps.
const REPORTS: (&str, &[u32]) = (
    "F",
    &[
        1, 3, 4, 5, 7, 8, 9, 11, 12, 14, 15, 16, 17, 19, 20, 21, 23, 24, 25, 26, 27, 28, 30, 31,
        32, 33, 34, 35, 36, 37, 39, 40, 41, 42, 43, 45, 47, 48, 50, 51, 52, 53, 55, 56, 58, 59, 62,
        64,
    ],
);

/// Every id that must be listed.
fn ids() -> impl Iterator<Item = (&'static str, u32)> {
    let families = FAMILIES.iter().flat_map(|(family, n)| (1..=*n).map(move |i| (*family, i)));
    families.chain(REPORTS.1.iter().map(|number| (REPORTS.0, *number)))
}

pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.file(PAGE) else { return Vec::new() };
    let lines = Regex::new(r"^(?:\||[-*] )[\s*`]*([A-Z]{1,2}\d+(?:[*`]*,[\s*`]*[A-Z]{1,2}\d+)*)\b")
        .expect("a valid pattern");
    let id = Regex::new(r"([A-Z]+)(\d+)").expect("a valid pattern");
    let cited = Regex::new(r"`([a-z][a-z0-9_-]*(?:::[a-z0-9_-]+)*)`").expect("a valid pattern");
    let names = Names::of(repo);

    let mut missing: BTreeMap<(&str, u32), bool> = ids().map(|id| (id, true)).collect();
    let mut findings = Vec::new();
    for (number, line) in page.lines() {
        let Some(head) = lines.captures(line) else { continue };
        for found in id.captures_iter(&head[1]) {
            let of_id = found[2].parse().unwrap_or(0);
            let mut entries = missing.iter_mut();
            let entry = entries.find(|((family, n), _)| *family == &found[1] && *n == of_id);
            let entry = entry.map(|(_, missing)| missing);
            match entry {
                None => findings.push(page.finding_at(number, format!("unknown id {}", &found[0]))),
                Some(missing) if *missing => *missing = false,
                Some(_) => {
                    findings.push(page.finding_at(number, format!("{} again", &found[0])));
                }
            }
        }
        for test in cited.captures_iter(line).filter(|test| !names.has(&test[1])) {
            findings.push(page.finding_at(number, format!("no test `{}`", &test[1])));
        }
    }
    let missing = missing.into_iter().filter(|(_, missing)| *missing);
    findings.extend(
        missing
            .map(|((family, number), _)| page.finding(format!("{family}{number} is not listed"))),
    );
    findings
}

/// What may be cited: functions, and names in quotes, with the files they stand in.
struct Names<'a> {
    places: BTreeMap<&'a str, Vec<&'a File>>,
    packages: HashSet<String>,
}

impl<'a> Names<'a> {
    fn of(repo: &'a Repo) -> Self {
        let name = Regex::new(r#"\bfn\s+([a-z0-9_]+)|"([a-z][a-z0-9_-]*)""#).expect("valid");
        let mut names = Self { places: BTreeMap::new(), packages: HashSet::new() };
        for file in repo.with_extension("rs") {
            for found in name.captures_iter(&file.text) {
                let name = found.get(1).or(found.get(2)).expect("one of the two");
                names.places.entry(name.as_str()).or_default().push(file);
            }
            names.packages.extend(package_of(file));
        }
        names
    }

    /// A bare name may stand anywhere; with a path in front, each part of it must lead there.
    fn has(&self, cited: &str) -> bool {
        let mut path: Vec<&str> = cited.split("::").collect();
        let name = path.pop().unwrap_or_default();
        if path.is_empty() && (!name.contains('_') || self.packages.contains(&underscored(name))) {
            // A plain word in backticks is prose.
            return true;
        }
        let leads_to = |file: &&File| match path.split_first() {
            None => true,
            Some((package, inner)) => {
                package_of(file).as_deref() == Some(underscored(package).as_str())
                    && inner.iter().all(|part| is_on_path(file, part))
            }
        };
        self.places.get(name).is_some_and(|files| files.iter().any(leads_to))
    }
}

/// The package a file belongs to, as Rust spells it.
fn package_of(file: &File) -> Option<String> {
    let inside = file.path.strip_prefix("crates/").unwrap_or(&file.path);
    inside.split_once('/').map(|(package, _)| underscored(package))
}

fn underscored(name: &str) -> String {
    name.replace('-', "_")
}

/// Whether `part` is a folder or the file of the path; `tests` may be the module inside it.
fn is_on_path(file: &File, part: &str) -> bool {
    part == "tests" || file.path.trim_end_matches(".rs").split('/').any(|step| step == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::shown;

    const TESTS: (&str, &str) = (
        "crates/leasehold-core/src/memory.rs",
        "mod tests {\n    #[test]\n    fn expires_on_time() {}\n    case(\"late_release\");\n}\n",
    );

    fn page_with(lines: &str, except: &str) -> String {
        let ids = ids().map(|(family, number)| format!("{family}{number}"));
        let mut page = String::from("# Acceptance\n\n| id | test |\n| --- | --- |\n");
        page.push_str(lines);
        for id in ids.filter(|id| id != except) {
            page.push_str(&format!("| {id} | `lock` |\n"));
        }
        page
    }

    #[test]
    fn finds_missing_double_and_unknown_ids_and_tests_that_are_gone() {
        let lines = "| AL9 | a |\n| AL1 | `expires_too_late` |\n\
                     | **AL2** | `leasehold_sqlite::memory::expires_on_time` |\n";
        let found = check(&Repo::of(&[TESTS, (PAGE, &page_with(lines, "SL3"))]));
        assert_eq!(
            shown(&found),
            [
                "docs/acceptance.md:5: unknown id AL9",
                "docs/acceptance.md:6: no test `expires_too_late`",
                "docs/acceptance.md:7: no test `leasehold_sqlite::memory::expires_on_time`",
                "docs/acceptance.md:8: AL1 again",
                "docs/acceptance.md:9: AL2 again",
                "docs/acceptance.md: SL3 is not listed",
            ]
        );
    }

    #[test]
    fn accepts_a_full_list_with_tests_that_exist() {
        let line = "| SL3 | `leasehold-core::memory::tests::expires_on_time`, `late_release`, \
                    see `leasehold_core` and `Lease::release()` |\n";
        let found = check(&Repo::of(&[TESTS, (PAGE, &page_with(line, "SL3"))]));
        assert!(found.is_empty(), "{found:?}");
        assert!(check(&Repo::of(&[TESTS])).is_empty(), "the page may be missing");
    }
}
