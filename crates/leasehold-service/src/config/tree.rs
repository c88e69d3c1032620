//! A configuration before anybody has checked it: what the layers gave, with where texts come from.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

pub(crate) type Table = BTreeMap<String, Tree>;

/// A value that may be wrong in any way; the check tells how.
#[derive(Clone)]
pub(crate) enum Tree {
    Nothing,
    Flag(bool),
    Whole(i128),
    Fraction(f64),
    Text(String, Origin),
    List(Vec<Self>),
    Table(Table),
}

/// Where a text comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file: it may name variables that are not resolved yet.
    Raw,
    /// It stands for itself.
    Literal,
    /// A variable or a file that a text names: it is all text, so a number in it is a number, and it
    /// may be a secret.
    Variable,
    /// A variable that is a field of this configuration: it is all text as well.
    Environment,
}

impl Origin {
    /// Whether numbers and flags are written as texts there.
    pub(crate) const fn is_all_text(self) -> bool {
        matches!(self, Self::Variable | Self::Environment)
    }
}

impl Tree {
    /// What kind of value it is, for messages.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Flag(_) => "true or false",
            Self::Whole(_) => "a whole number",
            Self::Fraction(_) => "a fraction",
            Self::Text(..) => "a text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// The value itself, for messages, unless it may be a secret.
    pub(crate) fn shown(&self, secret: bool) -> String {
        match self {
            _ if secret => self.kind().into(),
            Self::Flag(flag) => flag.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Fraction(number) => number.to_string(),
            Self::Text(text, Origin::Raw | Origin::Literal) => format!("{text:?}"),
            other => other.kind().into(),
        }
    }
}

/// The inside of `connection` is the adapter's and may hold secrets.
pub(crate) const SECRET: &str = "connection";

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self, false, f)
    }
}

fn show(tree: &Tree, secret: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match tree {
        Tree::Table(table) => {
            f.write_str("{")?;
            for (index, (name, value)) in table.iter().enumerate() {
                write!(f, "{}{name}: ", if index == 0 { "" } else { ", " })?;
                show(value, secret || name == SECRET, f)?;
            }
            f.write_str("}")
        }
        Tree::List(values) => {
            f.write_str("[")?;
            for (index, value) in values.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { ", " })?;
                show(value, secret, f)?;
            }
            f.write_str("]")
        }
        Tree::Text(_, origin) if origin.is_all_text() => f.write_str("***"),
        _ if secret => f.write_str("***"),
        plain => f.write_str(&plain.shown(false)),
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a configuration")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Nothing)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Tree, E> {
        Ok(Tree::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Whole(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Whole(number.into()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Tree, E> {
        Ok(Tree::Whole(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Tree, E> {
        Ok(Tree::Fraction(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.into(), Origin::Raw))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Tree, A::Error> {
        let mut table = Table::new();
        while let Some((name, value)) = fields.next_entry()? {
            table.insert(name, value);
        }
        Ok(Tree::Table(table))
    }
}
