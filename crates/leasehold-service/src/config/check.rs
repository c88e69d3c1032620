//! Checks a configuration: every mistake at once, each with its path, without I/O (rule S1).

use std::{collections::BTreeMap, sync::Arc};

use leasehold::{Namespace, Ttl};

use super::{
    ServiceConfig,
    load::DEFAULT_VARIABLE,
    problem::{ConfigError, Problem},
    resolve::join,
    settings::Settings,
    tree::{Origin, SECRET, Table, Tree},
};
use crate::adapter::{AnyAdapter, Create, Reach};

/// The built-in entry, and its adapter.
const LOCAL: &str = "local";
const MUTEX: &str = "mutex";
/// 2^31−1 ms, as rule T1 has it.
const TTL_MS_MAX: u32 = i32::MAX as u32;

/// A configuration without a mistake.
pub(crate) struct Checked {
    pub(crate) default: String,
    pub(crate) entries: BTreeMap<String, CheckedEntry>,
}

pub(crate) struct CheckedEntry {
    pub(crate) adapter: Arc<dyn AnyAdapter>,
    pub(crate) namespace: Namespace,
    pub(crate) ttl: Option<Ttl>,
    pub(crate) enabled: bool,
    pub(crate) create: Create,
}

pub(crate) type Adapters = BTreeMap<String, Arc<dyn AnyAdapter>>;

/// # Errors
/// Every mistake of the configuration.
pub(crate) fn check(
    config: ServiceConfig,
    application: &str,
    adapters: &Adapters,
) -> Result<Checked, ConfigError> {
    let ServiceConfig { root, mut problems } = config;
    tell_unresolved(&root, "", &mut problems);
    let root = match root {
        Tree::Table(root) => root,
        other => {
            problems
                .push(Problem::new("configuration", format!("{} is not a table", other.kind())));
            Table::new()
        }
    };
    let application = match Namespace::new(application) {
        Ok(application) => application,
        Err(invalid) => {
            problems.push(Problem::new("application", invalid.to_string()));
            Namespace::default()
        }
    };
    let mut settings = Settings::new(String::new(), &root, false, &mut problems);
    let default = settings.text("default").unwrap_or_else(|| LOCAL.into());
    let default_shown = settings.quoted("default");
    let named = settings.table("entries").map(|table| with_local(table, &default));
    let named = named.unwrap_or_else(|| with_local(&Table::new(), &default));
    settings.finish();

    let mut entries = BTreeMap::new();
    let mut standing = BTreeMap::new();
    for (name, entry) in &named {
        let path = join("entries", name);
        match entry {
            Tree::Table(table) => {
                let settings = Settings::new(path, table, false, &mut problems);
                let (enabled, checked) = check_entry(settings, &application, adapters);
                standing.insert(name.as_str(), enabled);
                entries.extend(checked.map(|checked| (name.clone(), checked)));
            }
            // A variable that was not found has been told.
            Tree::Nothing => {}
            other => problems.push(Problem::new(path, format!("{} is not a table", other.kind()))),
        }
    }
    tell_letters(&named, &mut problems);
    check_default(&default, &default_shown, &standing, &mut problems);
    check_namespaces(&entries, &mut problems);
    if problems.is_empty() {
        Ok(Checked { default, entries })
    } else {
        Err(ConfigError::new(problems))
    }
}

/// The built-in entry is there when it is the default one and nobody has described it.
fn with_local(entries: &Table, default: &str) -> Table {
    let mut entries = entries.clone();
    if default == LOCAL && !entries.contains_key(LOCAL) {
        let adapter = Tree::Text(MUTEX.into(), Origin::Literal);
        entries.insert(LOCAL.into(), Tree::Table(Table::from([("adapter".into(), adapter)])));
    }
    entries
}

/// Reads one entry; entries inherit nothing from one another. Gives whether it is enabled.
fn check_entry(
    mut settings: Settings<'_>,
    application: &Namespace,
    adapters: &Adapters,
) -> (bool, Option<CheckedEntry>) {
    let name = settings.required_text("adapter");
    let adapter = name.as_ref().and_then(|name| adapters.get(name)).cloned();
    if name.is_some() && adapter.is_none() {
        let known: Vec<_> = adapters.keys().map(String::as_str).collect();
        let known = known.join(", ");
        let name = settings.quoted("adapter");
        settings.problem("adapter", format!("no adapter is called {name}; there are {known}"));
    }
    let namespace = match settings.text("namespace").map(Namespace::new) {
        None => Some(application.clone()),
        Some(Ok(namespace)) => Some(namespace),
        Some(Err(invalid)) => {
            settings.problem("namespace", invalid.to_string());
            None
        }
    };
    let ttl = settings.whole("ttl", 1..=TTL_MS_MAX);
    let ttl = ttl.and_then(|ms| Ttl::new(std::time::Duration::from_millis(ms.into())).ok());
    let enabled = settings.flag("enabled").unwrap_or(true);
    let create = check_connection(&mut settings, adapter.as_deref());
    settings.finish();
    let entry = match (adapter, namespace, create) {
        (Some(adapter), Some(namespace), Some(create)) => {
            Some(CheckedEntry { adapter, namespace, ttl, enabled, create })
        }
        _ => None,
    };
    (enabled, entry)
}

fn check_connection(
    settings: &mut Settings<'_>,
    adapter: Option<&dyn AnyAdapter>,
) -> Option<Create> {
    let is_wrong =
        matches!(settings.field(SECRET), Some(other) if !matches!(other, Tree::Table(_)));
    let given = settings.table(SECRET);
    if is_wrong {
        return None;
    }
    let adapter = adapter?;
    let none = Table::new();
    if adapter.reach() == Reach::InProcess && given.is_some() {
        let message = format!(
            "the adapter {} lives in this process, there is nothing to connect to",
            adapter.name()
        );
        settings.problem(SECRET, message);
        return None;
    }
    let path = join(settings.path(), SECRET);
    let table = given.unwrap_or(&none);
    let mut inner = Settings::new(path, table, true, settings.problems());
    let create = adapter.prepare(&mut inner);
    inner.finish();
    create
}

/// Variables reach entries whose names are in lower case: one that was meant for another entry makes
/// a second one, which lacks its adapter.
fn tell_letters(named: &Table, problems: &mut Vec<Problem>) {
    for (name, entry) in named {
        let Tree::Table(entry) = entry else { continue };
        let is_another = |other: &&String| *other != name && other.eq_ignore_ascii_case(name);
        if let (None, Some(other)) = (entry.get("adapter"), named.keys().find(is_another)) {
            let other = join("entries", other);
            let message = format!("is not {other}; variables set entries in lower case only");
            problems.push(Problem::new(join("entries", name), message));
        }
    }
}

fn check_default(
    default: &str,
    shown: &str,
    standing: &BTreeMap<&str, bool>,
    problems: &mut Vec<Problem>,
) {
    let message = match standing.get(default) {
        Some(true) => return,
        Some(false) => format!("the entry {shown} is not enabled"),
        None => {
            let known: Vec<_> = standing.keys().copied().collect();
            format!("no entry is called {shown}; there are {}", known.join(", "))
        }
    };
    let message = format!("{message} ({DEFAULT_VARIABLE} overrides the file)");
    problems.push(Problem::new("default", message));
}

/// Two in-process entries with one namespace would be two locks of one name that do not exclude
/// each other, whatever their adapters are.
fn check_namespaces(entries: &BTreeMap<String, CheckedEntry>, problems: &mut Vec<Problem>) {
    let mut first_with: BTreeMap<_, &str> = BTreeMap::new();
    for (name, entry) in entries {
        if !entry.enabled || entry.adapter.reach() != Reach::InProcess {
            continue;
        }
        if let Some(first) = first_with.get(entry.namespace.as_str()) {
            let message = format!(
                "{:?} is the namespace of {} too, and both live in this process",
                entry.namespace.as_str(),
                join("entries", first)
            );
            let path = join(&join("entries", name), "namespace");
            problems.push(Problem::new(path, message));
        } else {
            first_with.insert(entry.namespace.as_str().to_owned(), name.as_str());
        }
    }
}

/// Texts that came through serde and were not resolved would be taken for what they are not.
fn tell_unresolved(tree: &Tree, path: &str, problems: &mut Vec<Problem>) {
    match tree {
        Tree::Text(text, Origin::Raw) if text.contains("${") => {
            let message = "names a variable that was not resolved; see ServiceConfig::resolved";
            problems.push(Problem::new(path, message));
        }
        Tree::Table(table) => {
            for (name, value) in table {
                tell_unresolved(value, &join(path, name), problems);
            }
        }
        _ => {}
    }
}
