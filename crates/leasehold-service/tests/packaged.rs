//! A third party's adapter, in a crate outside of the workspace, built from the packaged crates and
//! driven by the suite (rule S8).

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const CONSUMER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/consumer");

#[test]
fn an_adapter_outside_of_the_workspace_is_built_from_the_packaged_crates_and_holds_the_suite() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("consumer");
    let crates = package(&place);
    let outside = place.join("crate");
    copy(Path::new(CONSUMER), &outside);
    // The versions that are known here, so that nothing is looked up.
    fs::copy(Path::new(ROOT).join("Cargo.lock"), outside.join("Cargo.lock")).unwrap();

    let mut test = cargo(&outside);
    test.args(["test", "--tests", "--offline", "--target-dir"]).arg(place.join("target"));
    for (name, path) in &crates {
        test.arg("--config").arg(format!("patch.crates-io.{name}.path='{}'", path.display()));
    }
    run(&mut test);
}

/// Packages the service and what it needs of the workspace, as for a registry, and unpacks it.
fn package(place: &Path) -> Vec<(String, PathBuf)> {
    let target = place.join("package");
    let (needed, version) = needed();
    let mut package = cargo(Path::new(ROOT));
    package.args(["package", "--no-verify", "--allow-dirty", "--offline", "--target-dir"]);
    package.arg(&target);
    for name in &needed {
        package.args(["-p", name]);
    }
    run(&mut package);
    let unpacked = place.join("unpacked");
    // Of an earlier run.
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir_all(&unpacked).unwrap();
    let unpack = |name: String| {
        let stem = format!("{name}-{version}");
        let archive = target.join("package").join(format!("{stem}.crate"));
        run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&unpacked));
        (name, unpacked.join(stem))
    };
    needed.into_iter().map(unpack).collect()
}

/// The crates of the workspace that the service depends on, by whatever feature.
fn needed() -> (BTreeSet<String>, String) {
    let mut metadata = cargo(Path::new(ROOT));
    metadata.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let metadata: Value = serde_json::from_slice(&run(&mut metadata)).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let find = |name: &str| packages.iter().find(|package| package["name"] == name);
    let mut needed = BTreeSet::new();
    let mut open = vec!["leasehold-service"];
    while let Some(name) = open.pop() {
        let Some(package) = find(name) else { continue };
        if !needed.insert(name.to_owned()) {
            continue;
        }
        let dependencies = package["dependencies"].as_array().unwrap();
        // A dev-dependency stays out of the package unless it names a version.
        let packed = dependencies.iter().filter(|on| on["kind"] != "dev" || on["req"] != "*");
        open.extend(packed.map(|on| on["name"].as_str().unwrap()));
    }
    let version = find("leasehold-service").unwrap()["version"].as_str().unwrap();
    (needed, version.to_owned())
}

fn cargo(directory: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(directory);
    // What the outer cargo says of its own package is nothing for the inner one.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG") || name.starts_with("CARGO_MANIFEST") {
            cargo.env_remove(&*name);
        }
    }
    // Line numbers of a build that nobody debugs cost a third of its time.
    cargo.env_remove("RUSTFLAGS").env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    cargo
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (shown(&output.stdout), shown(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}\n{err}");
    output.stdout
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // A build of one's own in there is not part of it.
        if entry.file_name() == OsStr::new("target") {
            continue;
        }
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}
