//! From files and the environment to a configuration, variables resolved.

use std::{
    collections::{HashMap, HashSet},
    env, fs,
    path::Path,
};

use config::{Config, Environment, File, FileFormat, Value, ValueKind};

use super::{
    ServiceConfig,
    problem::{ConfigError, Problem},
    resolve::NotText,
    tree::{Origin, Table, Tree},
};

/// The variable that selects the default entry.
pub const DEFAULT_VARIABLE: &str = "LEASEHOLD_DEFAULT";
/// Variables that begin so set a field of an entry: `LEASEHOLD_ENTRIES__JOBS__TTL=5000`.
pub const ENTRY_VARIABLE_PREFIX: &str = "LEASEHOLD_ENTRIES__";

/// Loads a file (TOML, or JSON when its name ends so), then the environment over it, and resolves
/// variables.
///
/// # Errors
/// A file that cannot be read or parsed. A variable that is not set is no error here: it stands in
/// the one list of mistakes that [`boot`](crate::ServiceBuilder::boot) gives.
pub fn load(path: impl AsRef<Path>) -> Result<ServiceConfig, ConfigError> {
    Sources::new().file(path).load()
}

/// The layers of a configuration; a later file goes over an earlier one, the environment goes over
/// all files.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    layers: Vec<Layer>,
    variables: Option<HashMap<String, String>>,
}

#[derive(Clone, Debug)]
enum Layer {
    File(std::path::PathBuf),
    Text(String, FileFormat),
}

impl Sources {
    /// The environment alone.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A file: JSON when its name ends in `.json`, else TOML.
    #[must_use]
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.layers.push(Layer::File(path.as_ref().into()));
        self
    }

    /// TOML as a text.
    #[must_use]
    pub fn toml(mut self, text: impl Into<String>) -> Self {
        self.layers.push(Layer::Text(text.into(), FileFormat::Toml));
        self
    }

    /// JSON as a text.
    #[must_use]
    pub fn json(mut self, text: impl Into<String>) -> Self {
        self.layers.push(Layer::Text(text.into(), FileFormat::Json));
        self
    }

    /// These variables instead of those of the process.
    #[must_use]
    pub fn variables<N: Into<String>, V: Into<String>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let variables = variables.into_iter();
        self.variables = Some(variables.map(|(name, value)| (name.into(), value.into())).collect());
        self
    }

    /// Reads all layers and resolves variables.
    ///
    /// # Errors
    /// As [`load`].
    pub fn load(self) -> Result<ServiceConfig, ConfigError> {
        let (variables, no_texts) =
            self.variables.map_or_else(of_process, |variables| (variables, HashSet::new()));
        if let Some(name) = no_texts.iter().find(|name| is_ours(name)) {
            return Err(refused(name, "is not UTF-8"));
        }
        let mut layers = Config::builder();
        for layer in &self.layers {
            let (place, text, format) = layer.read()?;
            // Each by itself first, so that a mistake names its file.
            let alone = Config::builder().add_source(File::from_str(&text, format)).build();
            alone.map_err(|error| refused(&place, &told(&error)))?;
            layers = layers.add_source(File::from_str(&text, format));
        }
        let built = layers.add_source(of_environment(&variables)).build();
        let built = built.map_err(|error| refused("configuration", &told(&error)))?;
        let mut config = ServiceConfig::of(tree(built.cache));
        config.resolve_with(&|name| match variables.get(name) {
            Some(value) => Some(Ok(value.clone())),
            None => no_texts.contains(name).then_some(Err(NotText)),
        });
        Ok(config)
    }
}

impl Layer {
    /// What to call it, its text and its format.
    fn read(&self) -> Result<(String, String, FileFormat), ConfigError> {
        match self {
            Self::Text(text, format) => Ok(("configuration".into(), text.clone(), *format)),
            Self::File(path) => {
                let json = path.extension().is_some_and(|ending| ending == "json");
                let format = if json { FileFormat::Json } else { FileFormat::Toml };
                let place = path.display().to_string();
                match fs::read_to_string(path) {
                    Ok(text) => Ok((place, text, format)),
                    Err(error) => Err(refused(&place, &format!("cannot be read: {error}"))),
                }
            }
        }
    }
}

/// The variables of this process, and the names of those whose values are no UTF-8. A name that is
/// none is nobody's here.
fn of_process() -> (HashMap<String, String>, HashSet<String>) {
    let (mut variables, mut no_texts) = (HashMap::new(), HashSet::new());
    for (name, value) in env::vars_os() {
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => drop(variables.insert(name, value)),
            Err(_) => drop(no_texts.insert(name)),
        }
    }
    (variables, no_texts)
}

fn refused(place: &str, why: &str) -> ConfigError {
    ConfigError::new(vec![Problem::new(place, why)])
}

/// What is wrong, without the text that is wrong: it may hold a secret.
fn told(error: &config::ConfigError) -> String {
    let message = match error {
        config::ConfigError::FileParse { cause, .. } => cause.to_string(),
        other => other.to_string(),
    };
    // A parser quotes the text after its first line, and a value that is of another type within it.
    match message.lines().next() {
        Some(first) if !first.starts_with("invalid type") => first.into(),
        _ => "is not a table".into(),
    }
}

/// Other programs of the family have variables of their own.
fn is_ours(name: &str) -> bool {
    name == DEFAULT_VARIABLE || name.starts_with(ENTRY_VARIABLE_PREFIX)
}

/// Only what is meant for a service.
fn of_environment(variables: &HashMap<String, String>) -> Environment {
    let ours = variables.iter().filter(|(name, _)| is_ours(name));
    let ours = ours.map(|(name, value)| (name.clone(), value.clone())).collect();
    Environment::with_prefix("LEASEHOLD").prefix_separator("_").separator("__").source(Some(ours))
}

fn tree(value: Value) -> Tree {
    let from_environment = value.origin() == Some("the environment");
    match value.kind {
        ValueKind::Nil => Tree::Nothing,
        ValueKind::Boolean(flag) => Tree::Flag(flag),
        ValueKind::I64(number) => Tree::Whole(number.into()),
        ValueKind::I128(number) => Tree::Whole(number),
        ValueKind::U64(number) => Tree::Whole(number.into()),
        ValueKind::U128(number) => Tree::Whole(i128::try_from(number).unwrap_or(i128::MAX)),
        ValueKind::Float(number) => Tree::Fraction(number),
        ValueKind::String(text) if from_environment => Tree::Text(text, Origin::Environment),
        ValueKind::String(text) => Tree::Text(text, Origin::Raw),
        ValueKind::Array(values) => Tree::List(values.into_iter().map(tree).collect()),
        ValueKind::Table(fields) => Tree::Table(
            fields.into_iter().map(|(name, value)| (name, tree(value))).collect::<Table>(),
        ),
    }
}
