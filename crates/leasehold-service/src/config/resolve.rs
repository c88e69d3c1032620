//! Variables in texts: `${NAME}`, `${NAME:-otherwise}`, `${file:PATH}`, and `$$` for a dollar.

use std::{borrow::Cow, fs};

use super::{
    problem::Problem,
    tree::{Origin, Tree},
};

/// The value of an environment variable, if it is set.
pub(crate) type Variable<'a> = dyn Fn(&str) -> Option<Result<String, NotText>> + 'a;

/// A variable is set to bytes that are no UTF-8.
#[derive(Clone, Copy)]
pub(crate) struct NotText;

/// Replaces what the texts of `tree` name; what is missing is told with its path.
pub(crate) fn resolve(
    tree: &mut Tree,
    path: &str,
    variable: &Variable<'_>,
    problems: &mut Vec<Problem>,
) {
    match tree {
        Tree::Text(text, origin @ Origin::Raw) => match expand(text, variable) {
            Ok(Cow::Borrowed(_)) => *origin = Origin::Literal,
            Ok(Cow::Owned(expanded)) => *tree = Tree::Text(expanded, Origin::Variable),
            Err(missing) => {
                problems.push(Problem::new(path, missing));
                // It has been told; nothing is to be told of the text beside it.
                *tree = Tree::Nothing;
            }
        },
        Tree::Table(table) => {
            for (name, value) in table {
                resolve(value, &join(path, name), variable, problems);
            }
        }
        Tree::List(values) => {
            for (index, value) in values.iter_mut().enumerate() {
                resolve(value, &format!("{path}[{index}]"), variable, problems);
            }
        }
        _ => {}
    }
}

/// A path as TOML would write it, so that it is not ambiguous.
pub(crate) fn join(path: &str, name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let name = if !name.is_empty() && name.chars().all(is_bare) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("{name:?}"))
    };
    if path.is_empty() { name.into() } else { format!("{path}.{name}") }
}

fn expand<'t>(text: &'t str, variable: &Variable<'_>) -> Result<Cow<'t, str>, String> {
    if !text.contains('$') {
        return Ok(Cow::Borrowed(text));
    }
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        rest = if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            after
        } else if let Some(after) = after.strip_prefix('{') {
            let (name, after) = after.split_once('}').ok_or("a ${ without its }")?;
            expanded.push_str(&value_of(name, variable)?);
            after
        } else {
            expanded.push('$');
            after
        };
    }
    expanded.push_str(rest);
    Ok(Cow::Owned(expanded))
}

fn value_of(name: &str, variable: &Variable<'_>) -> Result<String, String> {
    if let Some(path) = name.strip_prefix("file:") {
        return match fs::read_to_string(path) {
            Ok(text) => Ok(text.strip_suffix('\n').unwrap_or(&text).into()),
            Err(error) => Err(format!("the file {path} cannot be read: {error}")),
        };
    }
    let (name, otherwise) = match name.split_once(":-") {
        Some((name, otherwise)) => (name, Some(otherwise)),
        None => (name, None),
    };
    match (variable(name), otherwise) {
        (Some(Ok(value)), _) => Ok(value),
        (Some(Err(NotText)), _) => Err(format!("the environment variable {name} is not UTF-8")),
        (None, Some(otherwise)) => Ok(otherwise.into()),
        (None, None) => Err(format!("the environment variable {name} is not set")),
    }
}
