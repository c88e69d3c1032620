//! What is `pub` in the sources of one library, a line each.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Fields, ImplItem, Item, ItemImpl, ItemMacro, ItemTrait, Type, UseTree, Visibility,
};

use super::print::line;
use crate::repo::{File, Finding, Repo};

#[derive(Default)]
pub(super) struct Found {
    pub(super) lines: BTreeSet<String>,
    /// Dependencies whose names stand in the lines.
    pub(super) dependencies: BTreeSet<String>,
}

/// A module: its items, the public path to it, and whether it is hidden from readers.
struct Module<'a> {
    file: &'a File,
    items: Vec<Item>,
    path: String,
    is_hidden: bool,
}

pub(super) fn crate_at(
    repo: &Repo,
    root: &File,
    known: &HashSet<String>,
) -> Result<Found, Finding> {
    let mut modules = Vec::new();
    let items = parse(root)?;
    walk(repo, Module { file: root, items, path: String::new(), is_hidden: false }, &mut modules)?;
    let names = Names::of(&modules);
    let mut found = Found::default();
    for module in &modules {
        let mut lines = Vec::new();
        for item in module.items.iter().filter(|item| is_seen(attributes(item))) {
            // Of a hidden module, what is `pub use`d elsewhere.
            let is_exported = |name: &str| {
                !module.is_hidden || (names.exported.contains(name) && names.public.contains(name))
            };
            lines.extend(lines_of(item, &names, is_exported));
        }
        let uses = uses(&module.items, known);
        for text in lines {
            let of_crate = |word: &String| match uses.get(word) {
                Some(from) => Some(from.clone()),
                None => (known.contains(word) && text.contains(&format!("{word}::")))
                    .then(|| word.clone()),
            };
            // What `thiserror` derives are traits of the standard library.
            let shown = words(&text)
                .iter()
                .filter_map(of_crate)
                .filter(|name| name != "thiserror")
                .collect::<Vec<_>>();
            found.dependencies.extend(shown);
            let before =
                if module.path.is_empty() { String::new() } else { format!("{}: ", module.path) };
            found.lines.insert(before + &text);
        }
    }
    Ok(found)
}

fn parse(file: &File) -> Result<Vec<Item>, Finding> {
    let parsed = syn::parse_file(&file.text);
    parsed
        .map(|parsed| parsed.items)
        .map_err(|error| file.finding(format!("cannot be read as Rust: {error}")))
}

/// A module and all below it, in files of their own or not.
fn walk<'a>(repo: &'a Repo, module: Module<'a>, all: &mut Vec<Module<'a>>) -> Result<(), Finding> {
    let stem = module.file.path.trim_end_matches(".rs");
    let folder = stem.strip_suffix("/lib").or(stem.strip_suffix("/mod")).unwrap_or(stem);
    for item in &module.items {
        let Item::Mod(inner) = item else { continue };
        if is_left_out(&inner.attrs) {
            continue;
        }
        let name = inner.ident.to_string();
        let path = if is_public(&inner.vis) {
            format!("{}{}{name}", module.path, if module.path.is_empty() { "" } else { "::" })
        } else {
            String::new()
        };
        let is_hidden = module.is_hidden || !is_seen(&inner.attrs);
        let (file, items) = if let Some((_, items)) = &inner.content {
            (module.file, items.clone())
        } else {
            let places = [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")];
            let file = places.iter().find_map(|place| repo.file(place));
            let file =
                file.ok_or_else(|| module.file.finding(format!("no file of module {name}")))?;
            (file, parse(file)?)
        };
        walk(repo, Module { file, items, path, is_hidden }, all)?;
    }
    all.push(module);
    Ok(())
}

#[derive(Default)]
struct Names {
    public: HashSet<String>,
    private: HashSet<String>,
    exported: HashSet<String>,
    macros: HashSet<String>,
}

impl Names {
    fn of(modules: &[Module]) -> Self {
        let mut names = Self::default();
        for (module, item) in
            modules.iter().flat_map(|one| one.items.iter().map(move |item| (one, item)))
        {
            match item {
                Item::Struct(item) => names.note(&item.vis, &item.ident),
                Item::Enum(item) => names.note(&item.vis, &item.ident),
                Item::Trait(item) => names.note(&item.vis, &item.ident),
                Item::Fn(item) => names.note(&item.vis, &item.sig.ident),
                Item::Macro(item) => {
                    names.macros.extend(item.ident.iter().map(ToString::to_string))
                }
                Item::Use(item) if is_public(&item.vis) && !module.is_hidden => {
                    names.exported.extend(words(&line(item.tree.to_token_stream())));
                }
                _ => {}
            }
        }
        names
    }

    fn note(&mut self, visibility: &Visibility, name: &syn::Ident) {
        let names = if is_public(visibility) { &mut self.public } else { &mut self.private };
        names.insert(name.to_string());
    }
}

fn lines_of(item: &Item, names: &Names, is_exported: impl Fn(&str) -> bool) -> Vec<String> {
    let before = kept(attributes(item));
    let one = |visibility: &Visibility, name: &syn::Ident, tokens: TokenStream| {
        if is_public(visibility) && is_exported(&name.to_string()) {
            vec![line(quote!(#(#before)* pub #tokens))]
        } else {
            Vec::new()
        }
    };
    match item {
        Item::Use(item) if is_public(&item.vis) && is_exported("") => {
            let mut leaves = Vec::new();
            paths(&item.tree, String::new(), &mut leaves);
            let before = line(quote!(#(#before)*));
            let text = |path: String| format!("{before} pub use {path}").trim_start().to_owned();
            leaves.into_iter().map(text).collect()
        }
        Item::Mod(item) => one(&item.vis, &item.ident, {
            let name = &item.ident;
            quote!(mod #name)
        }),
        Item::Fn(item) => one(&item.vis, &item.sig.ident, item.sig.to_token_stream()),
        Item::Const(item) => one(&item.vis, &item.ident, {
            let (name, of) = (&item.ident, &item.ty);
            quote!(const #name: #of)
        }),
        Item::Static(item) => one(&item.vis, &item.ident, {
            let (name, of) = (&item.ident, &item.ty);
            quote!(static #name: #of)
        }),
        Item::Type(item) => one(&item.vis, &item.ident, {
            let (name, generics, of) = (&item.ident, &item.generics, &item.ty);
            quote!(type #name #generics = #of)
        }),
        Item::Struct(item) => {
            let (name, generics, bounds) =
                (&item.ident, &item.generics, &item.generics.where_clause);
            let fields = fields(&item.fields);
            one(&item.vis, name, quote!(struct #name #generics #fields #bounds))
        }
        Item::Enum(item) => {
            let (name, generics, bounds) =
                (&item.ident, &item.generics, &item.generics.where_clause);
            let mut lines = one(&item.vis, name, quote!(enum #name #generics #bounds));
            if !lines.is_empty() {
                let variants = item.variants.iter().filter(|variant| is_seen(&variant.attrs));
                lines.extend(variants.map(|variant| {
                    let (before, own) = (kept(&variant.attrs), &variant.ident);
                    let mut fields = variant.fields.clone();
                    fields.iter_mut().for_each(|field| field.attrs.clear());
                    format!("pub enum {name}: {}", line(quote!(#(#before)* #own #fields)))
                }));
            }
            lines
        }
        Item::Trait(item) if is_public(&item.vis) && is_exported(&item.ident.to_string()) => {
            lines_of_trait(item, &before)
        }
        Item::Impl(item) => lines_of_impl(item, names, is_exported),
        Item::Macro(item) if is_exported("") => lines_of_macro(item, names),
        _ => Vec::new(),
    }
}

/// `a::{b, c as d}` as two paths.
fn paths(tree: &UseTree, before: String, into: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => paths(&path.tree, format!("{before}{}::", path.ident), into),
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| paths(tree, before.clone(), into));
        }
        leaf => into.push(before + &line(leaf.to_token_stream())),
    }
}

/// Fields that can be named, and whether there are others.
fn fields(fields: &Fields) -> TokenStream {
    let public = || {
        fields.iter().filter(|field| is_public(&field.vis)).map(|field| {
            let (before, name, of) = (kept(&field.attrs), field.ident.iter(), &field.ty);
            quote!(#(#before)* pub #(#name:)* #of,)
        })
    };
    let rest = (public().count() < fields.len()).then(|| quote!(..));
    let public = public();
    match fields {
        Fields::Named(_) => quote!({ #(#public)* #rest }),
        Fields::Unnamed(_) => quote!((#(#public)* #rest)),
        Fields::Unit => TokenStream::new(),
    }
}

fn lines_of_trait(item: &ItemTrait, before: &[&Attribute]) -> Vec<String> {
    let mut head = item.clone();
    head.attrs = before.iter().map(|&attribute| attribute.clone()).collect();
    head.items.clear();
    let mut lines = vec![
        line(head.to_token_stream()).trim_end_matches(" {}").trim_end_matches(" { }").to_owned(),
    ];
    for inner in &item.items {
        let text = match inner {
            syn::TraitItem::Fn(inner) if is_seen(&inner.attrs) => {
                let default = if inner.default.is_some() { " { .. }" } else { "" };
                line(inner.sig.to_token_stream()) + default
            }
            syn::TraitItem::Type(inner) if is_seen(&inner.attrs) => {
                let (name, bounds) = (&inner.ident, &inner.bounds);
                if bounds.is_empty() {
                    format!("type {name}")
                } else {
                    format!("type {name}: {}", line(bounds.to_token_stream()))
                }
            }
            syn::TraitItem::Const(inner) if is_seen(&inner.attrs) => {
                format!("const {}: {}", inner.ident, line(inner.ty.to_token_stream()))
            }
            _ => continue,
        };
        lines.push(format!("trait {}: {text}", item.ident));
    }
    lines
}

fn lines_of_impl(
    item: &ItemImpl,
    names: &Names,
    is_exported: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut of = &*item.self_ty;
    while let Type::Reference(inner) = of {
        of = &inner.elem;
    }
    let owner = match of {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    };
    let owner = owner.unwrap_or_default();
    // Of a private trait, or for a private type: nobody sees it. A trait may be for foreign types.
    let by_trait =
        item.trait_.as_ref().and_then(|of| of.0.segments.last()).map(|last| last.ident.to_string());
    let is_private = names.private.contains(&owner) && !names.public.contains(&owner);
    let is_private_trait = by_trait
        .as_ref()
        .is_some_and(|name| names.private.contains(name) && !names.public.contains(name));
    if is_private || is_private_trait || !is_exported(&owner) {
        return Vec::new();
    }
    let mut head = item.clone();
    head.attrs = kept(&item.attrs).into_iter().cloned().collect();
    head.items.clear();
    let head =
        line(head.to_token_stream()).trim_end_matches(" {}").trim_end_matches(" { }").to_owned();
    let mut lines: Vec<_> = by_trait.iter().map(|_| head.clone()).collect();
    for inner in &item.items {
        let text = match inner {
            ImplItem::Fn(inner) if is_public(&inner.vis) && is_seen(&inner.attrs) => {
                let (before, signature) = (kept(&inner.attrs), &inner.sig);
                line(quote!(#(#before)* pub #signature))
            }
            ImplItem::Const(inner) if is_public(&inner.vis) && is_seen(&inner.attrs) => {
                let (name, of) = (&inner.ident, &inner.ty);
                line(quote!(pub const #name: #of))
            }
            ImplItem::Type(inner) if by_trait.is_some() => {
                let (name, generics, of) = (&inner.ident, &inner.generics, &inner.ty);
                line(quote!(type #name #generics = #of))
            }
            ImplItem::Macro(inner)
                if inner
                    .mac
                    .path
                    .get_ident()
                    .is_some_and(|name| names.macros.contains(&name.to_string())) =>
            {
                format!("macro {}", line(inner.mac.to_token_stream()))
            }
            _ => continue,
        };
        lines.push(format!("{head}: {text}"));
    }
    lines
}

/// What is `pub` in a definition, or the use of one.
fn lines_of_macro(item: &ItemMacro, names: &Names) -> Vec<String> {
    let Some(name) = &item.ident else {
        let own = item.mac.path.get_ident().filter(|name| names.macros.contains(&name.to_string()));
        return own.iter().map(|_| format!("macro {}", line(item.mac.to_token_stream()))).collect();
    };
    let mut found = Vec::new();
    public_in(item.mac.tokens.clone(), &mut found);
    found.into_iter().map(|text| format!("macro {name}: {text}")).collect()
}

/// From each `pub` up to the body, the end or the value of what it stands before.
fn public_in(tokens: TokenStream, found: &mut Vec<String>) {
    let mut open: Option<Vec<TokenTree>> = None;
    for token in tokens {
        let ends = match &token {
            TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Brace => true,
            TokenTree::Punct(sign) => sign.as_char() == ';',
            _ => false,
        };
        if ends {
            found.extend(open.take().map(|open| line(open.into_iter().collect())));
        }
        if let TokenTree::Group(group) = &token {
            public_in(group.stream(), found);
        }
        match &mut open {
            Some(open) => open.push(token),
            None if matches!(&token, TokenTree::Ident(word) if word == "pub") => {
                open = Some(vec![token])
            }
            None => {}
        }
    }
    // `pub(crate)` and the fields of a struct are not for everybody, or are shown with it.
    found.retain(|text| !text.starts_with("pub(") && !text.starts_with("pub ("));
}

/// By which dependency a file knows a word.
fn uses(items: &[Item], known: &HashSet<String>) -> BTreeMap<String, String> {
    fn leaves(tree: &UseTree, of: &str, into: &mut BTreeMap<String, String>) {
        match tree {
            UseTree::Path(path) => leaves(&path.tree, of, into),
            UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, of, into)),
            UseTree::Name(name) => drop(into.insert(name.ident.to_string(), of.to_owned())),
            UseTree::Rename(name) => drop(into.insert(name.rename.to_string(), of.to_owned())),
            UseTree::Glob(_) => {}
        }
    }
    let mut words = BTreeMap::new();
    for item in items {
        let Item::Use(item) = item else { continue };
        let UseTree::Path(path) = &item.tree else { continue };
        let of = path.ident.to_string();
        if known.contains(&of) {
            leaves(&path.tree, &of, &mut words);
        }
    }
    words
}

fn words(text: &str) -> HashSet<String> {
    let words = text.split(|sign: char| !sign.is_alphanumeric() && sign != '_');
    words.map(str::to_owned).collect()
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// For readers, and in an ordinary build.
fn is_seen(attributes: &[Attribute]) -> bool {
    let is_doc_hidden =
        |attribute: &Attribute| line(attribute.to_token_stream()) == "#[doc(hidden)]";
    !is_left_out(attributes) && !attributes.iter().any(is_doc_hidden)
}

fn is_left_out(attributes: &[Attribute]) -> bool {
    let left_out = ["#[cfg(test)]", "#[cfg(doctest)]", "#[cfg(leasehold_loom)]"];
    attributes.iter().any(|attribute| left_out.contains(&&*line(attribute.to_token_stream())))
}

/// Attributes that are part of what a user sees.
fn kept(attributes: &[Attribute]) -> Vec<&Attribute> {
    let names =
        ["cfg", "cfg_attr", "derive", "non_exhaustive", "deprecated", "proc_macro_attribute"];
    let is_kept = |attribute: &&Attribute| {
        let is_one = names.iter().any(|name| attribute.path().is_ident(name));
        is_one && !line(attribute.to_token_stream()).contains("leasehold_loom")
    };
    attributes.iter().filter(is_kept).collect()
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
