//! Reads one table of a configuration by field, and tells everything that is wrong with it.

use std::{collections::BTreeSet, fmt, ops::RangeInclusive};

use super::{
    problem::Problem,
    resolve::join,
    tree::{Origin, SECRET, Table, Tree},
};

/// A table that is being read: each field once by name and type. Mistakes are collected, not
/// returned: all of them are told at once (rule S1). A field that nobody asked for is one.
///
/// Adapters read their `connection` with it; values in there are never shown.
pub struct Settings<'a> {
    path: String,
    table: &'a Table,
    known: BTreeSet<&'static str>,
    secret: bool,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Settings<'a> {
    pub(crate) const fn new(
        path: String,
        table: &'a Table,
        secret: bool,
        problems: &'a mut Vec<Problem>,
    ) -> Self {
        Self { path, table, known: BTreeSet::new(), secret, problems }
    }

    /// A text, if it is there.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        match self.field(name)? {
            Tree::Text(text, _) => Some(text.clone()),
            other => self.refuse(name, other, "a text"),
        }
    }

    /// A text that must be there.
    pub fn required_text(&mut self, name: &'static str) -> Option<String> {
        self.required(name);
        self.text(name)
    }

    /// A secret text, if it is there.
    pub fn secret(&mut self, name: &'static str) -> Option<Secret> {
        self.text(name).map(Secret)
    }

    /// A secret text that must be there.
    pub fn required_secret(&mut self, name: &'static str) -> Option<Secret> {
        self.required_text(name).map(Secret)
    }

    /// A whole number within `range`, if it is there. A text from a variable may be one.
    pub fn whole(&mut self, name: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        let value = self.field(name)?;
        let number = match value {
            Tree::Whole(number) => Some(*number),
            Tree::Text(text, origin) if origin.is_all_text() => text.trim().parse().ok(),
            _ => None,
        };
        let Some(number) = number else {
            return self.refuse(name, value, &format!("a whole number in {range:?}"));
        };
        match u32::try_from(number).ok().filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => {
                let shown = value.shown(self.secret);
                self.problem(name, format!("{shown} is not in {range:?}"));
                None
            }
        }
    }

    /// `true` or `false`, if it is there. A text from a variable may be one.
    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        let value = self.field(name)?;
        match value {
            Tree::Flag(flag) => Some(*flag),
            Tree::Text(text, origin) if origin.is_all_text() && text == "true" => Some(true),
            Tree::Text(text, origin) if origin.is_all_text() && text == "false" => Some(false),
            other => self.refuse(name, other, "true or false"),
        }
    }

    /// Tells that something is wrong with a field.
    pub fn problem(&mut self, name: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(join(&self.path, name), message));
    }

    /// The field as it stands; `None`: it is not there.
    pub(crate) fn field(&mut self, name: &'static str) -> Option<&'a Tree> {
        self.known.insert(name);
        self.table.get(name).filter(|value| !matches!(value, Tree::Nothing))
    }

    /// A table, if it is there, read by `read`.
    pub(crate) fn table(&mut self, name: &'static str) -> Option<&'a Table> {
        match self.field(name)? {
            Tree::Table(table) => Some(table),
            other => self.refuse(name, other, "a table"),
        }
    }

    /// The name of something as a message has it. What a text takes from a variable may have been
    /// meant for another field, and is not repeated.
    pub(crate) fn quoted(&self, name: &str) -> String {
        match self.table.get(name) {
            Some(Tree::Text(_, Origin::Variable)) => "as the variable says".into(),
            Some(Tree::Text(text, _)) => format!("{text:?}"),
            _ => "like that".into(),
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) const fn problems(&mut self) -> &mut Vec<Problem> {
        self.problems
    }

    /// Tells of the fields that nobody asked for.
    pub(crate) fn finish(self) {
        for name in self.table.keys().filter(|name| !self.known.contains(name.as_str())) {
            let known: Vec<_> = self.known.iter().copied().collect();
            let message = match known.as_slice() {
                [] => "unknown field; this table has none".into(),
                known => format!("unknown field; there are {}", known.join(", ")),
            };
            self.problems.push(Problem::new(join(&self.path, name), message));
        }
    }

    /// One that is `Nothing` was told of when its variable was not found.
    fn required(&mut self, name: &'static str) {
        if !self.table.contains_key(name) {
            self.problem(name, "is missing");
        }
    }

    fn refuse<T>(&mut self, name: &str, value: &Tree, wanted: &str) -> Option<T> {
        let shown = value.shown(self.secret || name == SECRET);
        self.problem(name, format!("{shown} is not {wanted}"));
        None
    }
}

impl fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A text that does not show itself: passwords, URLs that hold them.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for whoever has to send it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
