//! Only `leasehold-sync` may contain unsafe code; every other crate forbids it to itself.

use syn::{Attribute, Meta};

use crate::repo::{Finding, Repo};

const MAY_USE_UNSAFE: &str = "crates/leasehold-sync/";

pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let roots = repo.files().filter(|file| is_root(&file.path));
    roots
        .filter(|file| !file.path.starts_with(MAY_USE_UNSAFE))
        .filter_map(|file| match syn::parse_file(&file.text) {
            Ok(parsed) if parsed.attrs.iter().any(forbids_unsafe) => None,
            Ok(_) => Some(file.finding("lacks `#![forbid(unsafe_code)]`")),
            Err(error) => Some(file.finding(format!("cannot be read as Rust: {error}"))),
        })
        .collect()
}

/// Whether `path` is the root of a library or of a program.
fn is_root(path: &str) -> bool {
    let Some((package, source)) = path.split_once("/src/") else { return false };
    let is_member =
        package.starts_with("crates/") || package == "xtask" || package == "test-servers";
    let program =
        source.strip_prefix("bin/").is_some_and(|program| match program.split_once('/') {
            Some((_, inside)) => inside == "main.rs",
            None => program.ends_with(".rs"),
        });
    is_member && (source == "lib.rs" || source == "main.rs" || program)
}

fn forbids_unsafe(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    list.path.is_ident("forbid")
        && list.tokens.clone().into_iter().any(|token| token.to_string() == "unsafe_code")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::shown;

    #[test]
    fn finds_roots_that_allow_unsafe_code() {
        let repo = Repo::of(&[
            ("crates/a/src/lib.rs", "//! A.\n#![deny(unsafe_code)]\n"),
            ("crates/a/src/bin/holder.rs", "// #![forbid(unsafe_code)]\nfn main() {}\n"),
        ]);
        assert_eq!(
            shown(&check(&repo)),
            [
                "crates/a/src/lib.rs: lacks `#![forbid(unsafe_code)]`",
                "crates/a/src/bin/holder.rs: lacks `#![forbid(unsafe_code)]`"
            ]
        );
    }

    #[test]
    fn accepts_forbidding_roots_inner_files_and_the_one_exception() {
        let repo = Repo::of(&[
            ("crates/a/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\n"),
            ("crates/a/src/inner.rs", "fn f() {}\n"),
            ("crates/a/src/bin/holder/pipe.rs", "fn f() {}\n"),
            ("crates/leasehold-sync/src/lib.rs", "//! Sync.\n"),
        ]);
        assert!(check(&repo).is_empty());
    }
}
