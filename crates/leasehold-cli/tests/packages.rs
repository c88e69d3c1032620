//! Every crate that is published packs without a warning, and has in its archive what a user of it
//! reads and what a registry shows.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn every_published_crate_packs_whole() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let published = published();
    assert!(published.len() >= 10, "{published:?}");
    let mut package = cargo();
    package.args(["package", "--no-verify", "--allow-dirty", "--offline", "--target-dir"]);
    package.arg(&place);
    for (name, _) in &published {
        package.args(["-p", name]);
    }
    let said = String::from_utf8(run(&mut package).stderr).unwrap();
    assert!(!said.contains("warning"), "{said}");
    let unpacked = place.join("unpacked");
    // Of an earlier run.
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir_all(&unpacked).unwrap();
    for (name, version) in published {
        let stem = format!("{name}-{version}");
        let archive = place.join("package").join(format!("{stem}.crate"));
        run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&unpacked));
        check(&unpacked.join(stem));
    }
}

fn check(package: &Path) {
    let root = Path::new(ROOT);
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let own = fs::read(package.join(name)).unwrap_or_default();
        assert!(own == fs::read(root.join(name)).unwrap(), "{}: {name}", package.display());
    }
    let readme = fs::read_to_string(package.join("README.md")).unwrap_or_default();
    assert!(readme.starts_with("# "), "{}: README.md", package.display());
    let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
    for key in
        ["description", "license", "repository", "readme", "keywords", "categories", "rust-version"]
    {
        let is_there = manifest.lines().any(|line| line.starts_with(&format!("{key} = ")));
        assert!(is_there, "{}: {key}", package.display());
    }
    let mut sources = Vec::new();
    rust_files(&package.join("src"), &mut sources);
    assert!(!sources.is_empty());
    for source in sources {
        for included in included(&fs::read_to_string(&source).unwrap()) {
            let file = source.parent().unwrap().join(&included);
            let resolved = fs::canonicalize(&file);
            let is_inside =
                resolved.is_ok_and(|file| file.starts_with(fs::canonicalize(package).unwrap()));
            assert!(is_inside, "{} includes {included}", source.display());
        }
    }
}

/// What a source includes, except for documentation that only doc-tests of this tree read.
fn included(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = "";
    for line in text.lines() {
        for macro_name in ["include_str!(\"", "include_bytes!(\"", "include!(\""] {
            let path = line.split_once(macro_name).and_then(|(_, rest)| rest.split_once('"'));
            if before.trim() != "#[cfg(doctest)]" {
                found.extend(path.map(|(path, _)| path.to_owned()));
            }
        }
        before = line;
    }
    found
}

#[test]
fn included_files_are_found() {
    let text = "#[cfg(doctest)]\n#[doc = include_str!(\"../../a.md\")]\nstruct A;\n\
                const B: &str = include_str!(\"b.sql\");\n";
    assert_eq!(included(text), ["b.sql"]);
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Names and versions.
fn published() -> BTreeSet<(String, String)> {
    let output = run(cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    // No list of registries: any.
    let published = packages.filter(|package| package["publish"].is_null());
    published.map(|package| (text(&package["name"]), text(&package["version"]))).collect()
}

fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(ROOT);
    // What the outer cargo says of its own package is nothing for the inner one.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG") || name.starts_with("CARGO_MANIFEST") {
            cargo.env_remove(&*name);
        }
    }
    cargo
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}
