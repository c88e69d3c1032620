//! One line of reason above every dependency, where its version is chosen.

use toml_edit::{Decor, DocumentMut, Item, Key, TableLike};

use crate::repo::{Finding, Repo};

const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.files().filter(|file| file.path.ends_with("Cargo.toml")) {
        let manifest = match file.text.parse::<DocumentMut>() {
            Ok(manifest) => manifest,
            Err(error) => {
                findings.push(file.finding(format!("cannot be read: {error}")));
                continue;
            }
        };
        for name in unexplained(manifest.as_table()) {
            findings.push(file.finding(format!("no reason above dependency `{name}`")));
        }
    }
    findings
}

/// Dependencies of all tables of a manifest that need a reason and have none.
fn unexplained(manifest: &dyn TableLike) -> Vec<&str> {
    let targets = table(manifest, "target")
        .into_iter()
        .flat_map(|targets| targets.iter().filter_map(|(_, target)| target.as_table_like()));
    table(manifest, "workspace")
        .into_iter()
        .chain(targets)
        .chain([manifest])
        .flat_map(|holder| TABLES.iter().filter_map(|name| table(holder, name)))
        .flat_map(unexplained_in)
        .collect()
}

fn table<'a>(holder: &'a dyn TableLike, name: &str) -> Option<&'a dyn TableLike> {
    holder.get(name)?.as_table_like()
}

fn unexplained_in(dependencies: &dyn TableLike) -> impl Iterator<Item = &str> {
    dependencies.iter().filter_map(|(name, item)| {
        let key = dependencies.key(name)?;
        (chooses_version(item) && !is_explained(key, item)).then_some(name)
    })
}

/// A path is a crate of this tree; `workspace = true` has its reason in the root.
fn chooses_version(item: &Item) -> bool {
    item.as_table_like()
        .is_none_or(|table| !table.contains_key("path") && !table.contains_key("workspace"))
}

/// A comment above `name = …`, `[dependencies.name]` or the first `name.key = …`.
fn is_explained(key: &Key, item: &Item) -> bool {
    let inner = item.as_table_like().and_then(|table| table.key(table.iter().next()?.0));
    [Some(key), inner].into_iter().flatten().any(|key| has_comment(key.leaf_decor()))
        || item.as_table().is_some_and(|table| has_comment(table.decor()))
}

fn has_comment(decor: &Decor) -> bool {
    let above = decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
    above.lines().last().is_some_and(|line| line.trim_start().starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::shown;

    #[test]
    fn finds_dependencies_without_a_reason_in_every_table() {
        let root = "[workspace.dependencies]\n# Why a.\na = \"1\"\nb = \"1\"\n\n# A heading.\n\nc = { version = \"1\" }\n";
        let member = "[dependencies]\nd.version = \"1\"\n[dev-dependencies.e]\nversion = \"1\"\n\
                      [target.'cfg(unix)'.dependencies]\nf = \"1\"\n";
        let repo = Repo::of(&[("Cargo.toml", root), ("crates/x/Cargo.toml", member)]);
        assert_eq!(
            shown(&check(&repo)),
            [
                "Cargo.toml: no reason above dependency `b`",
                "Cargo.toml: no reason above dependency `c`",
                "crates/x/Cargo.toml: no reason above dependency `f`",
                "crates/x/Cargo.toml: no reason above dependency `d`",
                "crates/x/Cargo.toml: no reason above dependency `e`",
            ]
        );
    }

    #[test]
    fn accepts_reasons_paths_and_what_the_workspace_explains() {
        let member = "[dependencies]\na.workspace = true\nb = { workspace = true, features = [] }\n\
                      c = { path = \"../c\" }\n# Why d.\nd.version = \"1\"\n# Why e.\ne = \"1\"\n\
                      # Why f.\n[dev-dependencies.f]\nversion = \"1\"\n";
        let found = check(&Repo::of(&[("crates/x/Cargo.toml", member)]));
        assert!(found.is_empty(), "{found:?}");
    }
}
