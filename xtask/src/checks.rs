//! What `verify` reads from the tree itself: one check per file.

mod acceptance;
pub(crate) mod dependencies;
mod doc_template;
mod links;
mod machine_paths;
pub(crate) mod public_api;
mod reasons;
mod sizes;
mod sleeps;
mod unfinished;
mod unsafe_code;

use crate::repo::{Finding, Repo};

type Check = fn(&Repo) -> Vec<Finding>;

/// Every check that needs nothing but the files.
pub(crate) const ALL: &[(&str, Check)] = &[
    ("headings of acquiring methods", doc_template::check),
    ("links of Markdown files", links::check),
    ("file sizes", sizes::check),
    ("a reason for every dependency", reasons::check),
    ("forbid(unsafe_code)", unsafe_code::check),
    ("paths of a machine", machine_paths::check),
    ("sleeps in tests", sleeps::check),
    ("unfinished marks", unfinished::check),
    ("acceptance list", acceptance::check),
    ("public API", public_api::check),
];
