//! An embedded store as a stage: its files are copied under load, and its boot id is changed.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use leasehold_core::{
    Acquire, Acquired, Backend, Binding, Fault, FaultKind, HolderInfo, LockKind, Ttl,
};

use super::{
    plan::{LockPlan, Size},
    rogue::request,
    stage::{Disturbance, Stage},
};
use crate::bench::block::outcome;

/// No machine has this boot id.
const FOREIGN_BOOT: &str = "00000000-0000-0000-0000-000000000000 elsewhere\n";

/// A store that is the database `PATH` and the directory `PATH.d`.
#[derive(Debug)]
pub struct Embedded {
    /// Opens the store at a path.
    pub connect: fn(&Path) -> Result<Arc<dyn Backend>, Fault>,
}

impl Stage for Embedded {
    fn connect(&self, address: &Path) -> Result<Arc<dyn Backend>, Fault> {
        (self.connect)(address)
    }

    fn disturb(&self, address: &Path, turn: u32) -> Result<Disturbance, String> {
        Ok(match turn % 3 {
            0 => {
                self.copied(address, turn, &["", "-wal", "-shm"])?;
                "database copied"
            }
            1 => {
                self.copied(address, turn, &["", "-wal", "-shm", ".d"])?;
                "whole store copied"
            }
            _ => {
                self.foreign_boot(address)?;
                "opened under another boot id"
            }
        }
        .into())
    }

    fn reboot(&self, address: &Path) -> Result<(), String> {
        let before = self.connect(address).map_err(told("the store opens before the boot"))?;
        // Bound to its token, so that only the boot ends it.
        let plan = LockPlan {
            kind: LockKind::Mutex,
            name: "left-over".into(),
            capacity: 1,
            ttl: Size::TTL,
        };
        let left_over = Acquire {
            binding: Binding::Token,
            ttl: Some(Ttl::new(Duration::from_secs(600)).expect("a valid TTL")),
            ..request(&plan, &Arc::new(HolderInfo::here()), 1)
        };
        match outcome(before.acquire(&left_over)) {
            Ok(Acquired::Granted(_)) => {}
            other => return Err(format!("the lock left-over is free before the boot: {other:?}")),
        }
        outcome(before.close()).map_err(told("the store closes before the boot"))?;
        drop(before);
        fs::write(boot_file(address), FOREIGN_BOOT).map_err(|error| error.to_string())?;
        let after = self.connect(address).map_err(told("the store opens after the boot"))?;
        expect_empty(&*after, "after the boot")?;
        outcome(after.close()).map_err(told("the store closes after the boot"))
    }
}

impl Embedded {
    /// A copy is taken by another program, as a backup would, and opened elsewhere: it may be
    /// refused, and what can be opened is a store of its own in which nobody holds anything.
    fn copied(&self, address: &Path, turn: u32, parts: &[&str]) -> Result<(), String> {
        let directory = address.with_file_name(format!("copy-{turn}"));
        let failed = |error: std::io::Error| format!("the copy: {error}");
        DirBuilder::new().mode(0o700).create(&directory).map_err(failed)?;
        let parts: Vec<PathBuf> = parts
            .iter()
            .map(|part| with_suffix(address, part))
            .filter(|part| part.exists())
            .collect();
        // Files of clients that end meanwhile are missing in the copy, which `cp` complains about.
        Command::new("cp")
            .arg("-a")
            .args(parts)
            .arg(&directory)
            .stderr(Stdio::null())
            .status()
            .map_err(failed)?;
        let copy = directory.join(address.file_name().expect("an address is a file"));
        if !copy.exists() {
            return Err(format!("{} was not copied", address.display()));
        }
        if let Ok(client) = self.connect(&copy) {
            expect_empty(&*client, "in a copy")?;
            outcome(client.close()).map_err(told("the copy closes"))?;
        }
        fs::remove_dir_all(&directory).map_err(failed)
    }

    /// While clients live, nobody of another boot is let in, and nothing is wiped.
    fn foreign_boot(&self, address: &Path) -> Result<(), String> {
        let file = boot_file(address);
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        let known = fs::read(&file).map_err(failed)?;
        fs::write(&file, FOREIGN_BOOT).map_err(failed)?;
        let opened = self.connect(address);
        fs::write(&file, known).map_err(failed)?;
        match opened {
            Err(fault) if fault.kind() == FaultKind::Unsafe => Ok(()),
            other => Err(format!("a store in use under another boot id: {other:?}")),
        }
    }
}

fn expect_empty(client: &dyn Backend, when: &str) -> Result<(), String> {
    let locks = outcome(client.survey(None)).map_err(told("the store shows its locks"))?;
    if locks.is_empty() { Ok(()) } else { Err(format!("{when} somebody holds: {locks:?}")) }
}

fn told(what: &'static str) -> impl Fn(Fault) -> String {
    move |fault| format!("{what}: {fault}")
}

fn boot_file(address: &Path) -> PathBuf {
    with_suffix(address, ".d").join("boot")
}

fn with_suffix(address: &Path, suffix: &str) -> PathBuf {
    let mut path = address.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
