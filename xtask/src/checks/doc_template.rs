//! Every public method that acquires documents the same headings (rule W7).

use std::collections::{BTreeMap, HashSet};

use syn::{
    Attribute, Expr, GenericArgument, ImplItem, Item, ItemImpl, ItemTrait, Lit, Meta,
    PathArguments, ReturnType, Signature, TraitItem, Type, Visibility,
};

use crate::repo::{File, Finding, Repo};

const PACKAGES: [&str; 2] = ["crates/leasehold/src/", "crates/leasehold-sync/src/"];
const HEADINGS: [&str; 4] = ["# Fairness", "# Cancel safety", "# Errors", "# Examples"];
const ACQUIRING: [&str; 12] = [
    "lock",
    "try_lock",
    "read",
    "try_read",
    "write",
    "try_write",
    "acquire",
    "acquire_many",
    "try_acquire",
    "run_exclusive",
    "run_shared",
    "acquire_all",
];

pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    PACKAGES.iter().flat_map(|package| check_package(repo, package)).collect()
}

fn check_package(repo: &Repo, package: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut parsed = BTreeMap::new();
    for file in repo.with_extension("rs").filter(|file| file.path.starts_with(package)) {
        match syn::parse_file(&file.text) {
            Ok(ast) => {
                parsed.insert(&file.path, (file, flatten(ast.items)));
            }
            Err(error) => findings.push(file.finding(format!("cannot be read as Rust: {error}"))),
        }
    }
    // A type and its methods may live in different files. `unreachable_pub` sees to it that
    // `pub` means public.
    let items = || parsed.values().flat_map(|(_, items)| items);
    let public: HashSet<String> = items().filter_map(public_type).collect();
    for (file, items) in parsed.values() {
        for item in items {
            match item {
                Item::Impl(block) => check_impl(file, block, &public, &mut findings),
                Item::Trait(block) => check_trait(file, block, &mut findings),
                _ => {}
            }
        }
    }
    findings
}

/// The items of a file and of its inline modules, tests left out.
fn flatten(items: Vec<Item>) -> Vec<Item> {
    let mut flat = Vec::new();
    for item in items {
        match item {
            Item::Mod(module) if is_test(&module.attrs) => {}
            Item::Mod(module) => {
                flat.extend(flatten(module.content.map(|(_, items)| items).unwrap_or_default()));
            }
            item => flat.push(item),
        }
    }
    flat
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

fn public_type(item: &Item) -> Option<String> {
    let (visibility, name) = match item {
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Enum(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    matches!(visibility, Visibility::Public(_)).then(|| name.to_string())
}

fn check_impl(file: &File, block: &ItemImpl, public: &HashSet<String>, out: &mut Vec<Finding>) {
    let Type::Path(path) = &*block.self_ty else { return };
    let Some(owner) = path.path.segments.last().map(|last| last.ident.to_string()) else { return };
    // Methods of a trait are documented on the trait.
    if block.trait_.is_some() || !public.contains(&owner) {
        return;
    }
    for item in &block.items {
        if let ImplItem::Fn(method) = item
            && matches!(method.vis, Visibility::Public(_))
        {
            out.extend(check_method(file, &owner, &method.sig, &method.attrs));
        }
    }
}

fn check_trait(file: &File, block: &ItemTrait, out: &mut Vec<Finding>) {
    if matches!(block.vis, Visibility::Public(_)) {
        for item in &block.items {
            if let TraitItem::Fn(method) = item {
                let owner = block.ident.to_string();
                out.extend(check_method(file, &owner, &method.sig, &method.attrs));
            }
        }
    }
}

fn check_method(file: &File, owner: &str, sig: &Signature, attrs: &[Attribute]) -> Option<Finding> {
    let name = sig.ident.to_string();
    let gives_nothing = sig.asyncness.is_none() && matches!(sig.output, ReturnType::Default);
    // `fn lock(&self) -> &LockId` tells of a lock and acquires nothing; no grant is a reference.
    let tells = matches!(&sig.output, ReturnType::Type(_, shown) if is_shown(shown));
    if !ACQUIRING.contains(&name.as_str()) || gives_nothing || tells {
        return None;
    }
    let docs: Vec<String> = attrs.iter().filter_map(doc_text).collect();
    let has =
        |heading: &&str| docs.iter().flat_map(|doc| doc.lines()).any(|l| l.trim() == *heading);
    let missing: Vec<&str> = HEADINGS.into_iter().filter(|heading| !has(heading)).collect();
    let what = || format!("`{owner}::{name}` lacks {}", missing.join(", "));
    (!missing.is_empty()).then(|| file.finding(what()))
}

/// A reference, or an optional one.
fn is_shown(shown: &Type) -> bool {
    match shown {
        Type::Reference(_) => true,
        Type::Path(path) => path.path.segments.last().is_some_and(|last| match &last.arguments {
            PathArguments::AngleBracketed(of) if last.ident == "Option" => {
                of.args.iter().any(|of| matches!(of, GenericArgument::Type(Type::Reference(_))))
            }
            _ => false,
        }),
        _ => false,
    }
}

fn doc_text(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(value) = &pair.value else { return None };
    let Lit::Str(text) = &value.lit else { return None };
    pair.path.is_ident("doc").then(|| text.value())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::shown;

    const FULL: &str = "/// Locks.\n///\n/// # Fairness\n/// F.\n/// # Cancel safety\n/// C.\n\
                        /// # Errors\n/// E.\n/// # Examples\n/// X.\n";

    #[test]
    fn finds_missing_headings_on_public_acquiring_methods() {
        let source = "pub struct Mutex;\n/** # Examples */ pub fn lock() -> u8 { 0 }\n\
                      impl<T> Mutex {\n/// # Errors\npub async fn lock(&self) {}\n}\n\
                      pub trait Locks { fn try_read(&self) -> bool; }\n";
        let found = check(&Repo::of(&[("crates/leasehold/src/lib.rs", source)]));
        assert_eq!(
            shown(&found),
            [
                "crates/leasehold/src/lib.rs: `Mutex::lock` lacks # Fairness, # Cancel safety, \
                 # Examples",
                "crates/leasehold/src/lib.rs: `Locks::try_read` lacks # Fairness, \
                 # Cancel safety, # Errors, # Examples",
            ]
        );
    }

    #[test]
    fn accepts_full_docs_and_leaves_the_inside_alone() {
        let methods = format!("impl Mutex {{\n{FULL}pub fn lock(&self) -> Lock {{ Lock }}\n}}\n");
        let inside = "pub(crate) struct Core;\nimpl Core { pub fn lock(&self) -> u8 { 0 } }\n\
                      impl Mutex { pub(crate) fn read(&self) -> u8 { 0 }\n\
                      pub fn write(&self) -> &u8 { &0 } pub fn acquire(&self) -> Option<&u8> \
                      { None } }\n\
                      impl Locks for Mutex { fn try_read(&self) -> bool { true } }\n\
                      #[cfg(test)] mod tests { pub struct T; impl T { pub async fn lock() {} } }\n";
        let repo = Repo::of(&[
            ("crates/leasehold/src/mutex.rs", "pub struct Mutex;\n"),
            ("crates/leasehold/src/lock.rs", &methods),
            ("crates/leasehold/src/inside.rs", inside),
            ("crates/leasehold-core/src/lib.rs", "pub struct A; impl A { pub async fn lock() {} }"),
        ]);
        let found = check(&repo);
        assert!(found.is_empty(), "{found:?}");
    }
}
