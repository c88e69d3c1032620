//! The public API of every published library is what `docs/public-api` says, and so are the crates
//! that it shows: a change of either is seen in a review (`cargo xtask public-api --bless`).
//!
//! Read from the sources, so that stable Rust does. `unreachable_pub` sees to it that `pub` means
//! public, wherever the module of an item is; `pub use` lines say by which path. Macros of a crate are
//! not expanded: their uses are listed, and what is `pub` in their definitions.

mod collect;
mod print;

use std::collections::{BTreeMap, BTreeSet};

use toml_edit::DocumentMut;

use crate::repo::{Finding, Repo};

const FOLDER: &str = "docs/public-api/";
const BLESS: &str = "cargo xtask public-api --bless";

pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let made = match listings(repo) {
        Ok(made) => made,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    for (path, text) in &made {
        let Some(kept) = repo.file(path) else {
            let what = format!("is missing: {BLESS}");
            findings.push(Finding { place: path.clone(), what, is_warning: false });
            continue;
        };
        let (old, new): (BTreeSet<_>, BTreeSet<_>) =
            (kept.text.lines().collect(), text.lines().collect());
        findings.extend(old.difference(&new).map(|line| kept.finding(format!("- {line}"))));
        findings.extend(new.difference(&old).map(|line| kept.finding(format!("+ {line}"))));
        if kept.text != *text {
            findings.push(kept.finding(format!("is not the public API; if it should be: {BLESS}")));
        }
    }
    let stale = repo.files().filter(|file| file.path.starts_with(FOLDER));
    let stale = stale.filter(|file| !made.contains_key(&file.path));
    findings.extend(stale.map(|file| file.finding("is of no published library")));
    findings
}

/// The file of every published library, by its path.
pub(crate) fn listings(repo: &Repo) -> Result<BTreeMap<String, String>, Finding> {
    let mut made = BTreeMap::new();
    for root in repo.files() {
        let Some(folder) = root.path.strip_suffix("/src/lib.rs") else { continue };
        let Some(manifest) = repo.file(&format!("{folder}/Cargo.toml")) else { continue };
        let parsed: DocumentMut =
            manifest.text.parse().map_err(|error| manifest.finding(format!("{error}")))?;
        let package = &parsed["package"];
        if !folder.starts_with("crates/") || package.get("publish").is_some() {
            continue;
        }
        let name = package["name"].as_str().unwrap_or_default();
        let dependencies = dependencies(&parsed);
        let found = collect::crate_at(repo, root, &dependencies.keys().cloned().collect())?;
        let shown = found.dependencies.iter().map(|shown| dependencies[shown].as_str());
        let shown: Vec<_> = shown.collect();
        let shown = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
        let lines: Vec<_> = found.lines.iter().map(|line| format!("{line}\n")).collect();
        let text = format!(
            "# The public API of {name}, made by `{BLESS}`.\n# Crates that it shows: {shown}\n\n{}",
            lines.concat()
        );
        made.insert(format!("{FOLDER}{name}.txt"), text);
    }
    Ok(made)
}

/// What a library is built with: by the name in its sources, as a reader should see it.
fn dependencies(manifest: &DocumentMut) -> BTreeMap<String, String> {
    let table = manifest.get("dependencies").and_then(|table| table.as_table_like());
    let all = table.into_iter().flat_map(|table| table.iter());
    all.map(|(name, item)| {
        let is_optional = item.get("optional").and_then(|value| value.as_bool()) == Some(true);
        let shown = format!("{name}{}", if is_optional { " (optional)" } else { "" });
        (name.replace('-', "_"), shown)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::shown;

    const MANIFEST: &str = "[package]\nname = \"a\"\n[dependencies]\nhidden = \"1\"\nshown-one = { version = \"1\", optional = true }\n";
    const ROOT: &str = "mod inner;\npub mod open;\npub use inner::{Thing, Kind};\nfn private() {}\n#[cfg(test)]\nmod tests { pub fn no() {} }\n";
    const INNER: &str = "use shown_one::Shown;\nuse hidden::Hidden;\n#[derive(Clone)]\npub struct Thing<T> { pub a: u8, b: Hidden, _t: T }\nimpl<T: Send> Thing<T> {\n    /// Doc.\n    pub async fn go(&self, n: Shown) -> u8 { 3 }\n    fn no(&self) {}\n}\nimpl<T> Drop for Thing<T> { fn drop(&mut self) {} }\npub enum Kind { A, B(u8) }\nstruct Own;\nimpl Drop for Own { fn drop(&mut self) {} }\nmacro_rules! more { ($n:ident) => { impl $n { pub fn by_macro(&self) {} } } }\nmore!(Kind);\n#[doc(hidden)]\npub fn unseen() {}\n";
    const OPEN: &str = "pub const N: u8 = 4;\npub trait Work: Send { type Out; fn work(&self) -> Self::Out; fn rest(&self) {} }\n";

    fn tree(listing: Option<&str>) -> Repo {
        let mut files = vec![
            ("crates/a/Cargo.toml", MANIFEST),
            ("crates/a/src/lib.rs", ROOT),
            ("crates/a/src/inner.rs", INNER),
            ("crates/a/src/open.rs", OPEN),
            ("crates/b/Cargo.toml", "[package]\nname = \"b\"\npublish = false\n"),
            ("crates/b/src/lib.rs", "pub fn not_published() {}\n"),
        ];
        files.extend(listing.map(|text| ("docs/public-api/a.txt", text)));
        Repo::of(&files)
    }

    #[test]
    fn lists_what_is_public_and_the_crates_that_it_shows() {
        let made = listings(&tree(None)).expect("it is Rust");
        assert_eq!(made.len(), 1, "{made:?}");
        let text = &made["docs/public-api/a.txt"];
        let expected = "# The public API of a, made by `cargo xtask public-api --bless`.\n\
            # Crates that it shows: shown-one (optional)\n\n\
            #[derive(Clone)] pub struct Thing<T> { pub a: u8, .. }\n\
            impl<T: Send> Thing<T>: pub async fn go(&self, n: Shown) -> u8\n\
            impl<T> Drop for Thing<T>\n\
            macro more!(Kind)\n\
            macro more: pub fn by_macro(&self)\n\
            open: pub const N: u8\n\
            open: pub trait Work: Send\n\
            open: trait Work: fn rest(&self) { .. }\n\
            open: trait Work: fn work(&self) -> Self::Out\n\
            open: trait Work: type Out\n\
            pub enum Kind\n\
            pub enum Kind: A\n\
            pub enum Kind: B(u8)\n\
            pub mod open\n\
            pub use inner::Kind\n\
            pub use inner::Thing\n";
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn finds_what_came_and_what_went_and_takes_what_is_the_same() {
        let same = listings(&tree(None)).expect("it is Rust").remove("docs/public-api/a.txt");
        let same = same.expect("it is listed");
        assert!(check(&tree(Some(&same))).is_empty());
        let other = same.replace("pub mod open\n", "pub fn gone()\n");
        let found = shown(&check(&tree(Some(&other))));
        let end = "docs/public-api/a.txt: is not the public API; if it should be: cargo xtask public-api --bless";
        let lines = [
            "docs/public-api/a.txt: - pub fn gone()",
            "docs/public-api/a.txt: + pub mod open",
            end,
        ];
        assert_eq!(found, lines);
        assert_eq!(check(&tree(None)).len(), 1, "a missing file is found");
        let stale = Repo::of(&[("docs/public-api/old.txt", "")]);
        assert_eq!(check(&stale).len(), 1, "a file of nothing is found");
    }
}
