//! What is asked of the system and is Linux's own. Only Linux is written and tested.

use std::{fs, io, path::PathBuf, time::SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// The id of this boot of the machine: another one means that every process of before is gone.
pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The time namespace of this process. In another one the boot-time clock may show another time.
pub(crate) fn time_namespace() -> String {
    // A kernel without time namespaces has one time, and no such link.
    fs::read_link("/proc/self/ns/time")
        .map_or_else(|_| "none".into(), |link| link.to_string_lossy().into_owned())
}

/// The monotonic clock in microseconds. It stands still while the machine is suspended.
pub(crate) fn monotonic_us() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}

/// The wall clock in microseconds since 1970; 0 before.
pub(crate) fn wall_us() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX / 4))
}

/// The user id whose rights count.
pub(crate) fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The home directory that the password database names for a user.
///
/// A static program reads the file alone: other sources need libraries that glibc loads at run time,
/// which ends such a program when they do not fit.
pub(crate) fn home_of(uid: u32) -> Option<PathBuf> {
    if cfg!(target_feature = "crt-static") {
        return home_in(&fs::read_to_string("/etc/passwd").ok()?, uid);
    }
    nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten().map(|user| user.dir)
}

/// The same in the text of a password file: name, password, uid, gid, comment, home, shell.
fn home_in(passwd: &str, uid: u32) -> Option<PathBuf> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        (fields.next()?.parse() == Ok(uid)).then_some(())?;
        fields.nth(2).filter(|home| !home.is_empty()).map(PathBuf::from)
    })
}

/// The process that holds the exclusive `flock` on the file with this inode, as far as the kernel
/// shows it: a process of another container is shown as 0, and then this is `None`.
pub(crate) fn flock_holder(inode: u64) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let inode = inode.to_string();
    locks.lines().find_map(|line| {
        // 1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
        let mut words = line.split_whitespace().skip(1);
        let (kind, _, access) = (words.next()?, words.next()?, words.next()?);
        let (pid, file) = (words.next()?, words.next()?);
        let is_it = kind == "FLOCK" && access == "WRITE" && file.rsplit(':').next() == Some(&inode);
        if is_it { pid.parse().ok().filter(|pid| *pid != 0) } else { None }
    })
}

/// Why a file system is not fit for a store, by its magic number.
pub(crate) fn unfit_file_system(magic: u64) -> Option<&'static str> {
    // The numbers are those of statfs(2) and of linux/magic.h. Locks and shared memory of these
    // either do not reach the other machine or are not kept by all servers.
    Some(match magic {
        0x6969 => "NFS",
        0x517b => "SMB",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x564c => "NCP",
        0x6573_5546 => "FUSE or virtiofs",
        0x0102_1997 => "9p",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x2003_0528 => "OrangeFS",
        0xaad7_aaea => "PanFS",
        0x786f_4256 => "a VirtualBox shared folder",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_and_shared_file_systems_are_unfit_and_local_ones_are_not() {
        assert_eq!(unfit_file_system(0x6969), Some("NFS"));
        assert_eq!(unfit_file_system(0x6573_5546), Some("FUSE or virtiofs"));
        assert_eq!(unfit_file_system(0x0102_1997), Some("9p"));
        // ext4, tmpfs, overlay, btrfs, xfs
        for local in [0xef53, 0x0102_1994, 0x794c_7630, 0x9123_683e, 0x5846_5342] {
            assert_eq!(unfit_file_system(local), None);
        }
    }

    #[test]
    fn the_holder_of_a_flock_is_found() {
        use std::os::unix::fs::MetadataExt;
        let file = tempfile::tempfile().unwrap();
        let inode = file.metadata().unwrap().ino();
        assert_eq!(flock_holder(inode), None);
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert_eq!(flock_holder(inode), Some(std::process::id()));
    }

    #[test]
    fn a_home_is_found_by_its_uid_alone() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:0:,,:/srv/ann:/bin/sh\nb:x:7:7:::\n";
        assert_eq!(home_in(passwd, 1000), Some("/srv/ann".into()));
        assert_eq!(home_in(passwd, 0), Some("/root".into()));
        assert_eq!((home_in(passwd, 7), home_in(passwd, 100)), (None, None));
        let here = std::fs::read_to_string("/etc/passwd").unwrap();
        assert_eq!(home_in(&here, 0), home_of(0));
    }
}
