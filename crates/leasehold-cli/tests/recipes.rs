//! The scripts of docs/recipes.md: each is what the page shows, and does what the page says.

#[path = "program/common.rs"]
mod common;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use common::{PROGRAM, Section, Store, eventually};
use rustix::process::{Pid, Signal, kill_process};

/// A store, a PATH with `leasehold` on it, and the commands that the scripts start.
struct Kitchen {
    store: Store,
}

impl Kitchen {
    fn new() -> Self {
        let store = Store::new();
        symlink(PROGRAM, store.dir().join("leasehold")).unwrap();
        Self { store }
    }

    fn log(&self) -> PathBuf {
        self.store.dir().join("log")
    }

    fn logged(&self) -> Vec<String> {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A command of the user's.
    fn command(&self, name: &str, script: &str) -> PathBuf {
        let path = self.store.dir().join(name);
        fs::write(&path, format!("#!/bin/sh\nlog='{}'\n{script}\n", self.log().display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A script of the recipes.
    fn recipe(&self, name: &str) -> Command {
        let path = format!("{}:{}", self.store.dir().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("env");
        self.store.surround(&mut command).args(["--default-signal", "sh"]).arg(script(name));
        command.env("PATH", path).current_dir(self.store.dir());
        command
    }
}

fn script(name: &str) -> PathBuf {
    docs().join("recipes").join(format!("{name}.sh"))
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn code(mut child: Child) -> Option<i32> {
    child.wait().unwrap().code()
}

#[test]
fn the_page_shows_every_script_as_it_is() {
    let page = fs::read_to_string(docs().join("recipes.md")).unwrap();
    let scripts: Vec<_> = fs::read_dir(docs().join("recipes")).unwrap().flatten().collect();
    assert!(scripts.len() >= 8);
    for script in scripts {
        let text = fs::read_to_string(script.path()).unwrap();
        assert!(
            page.contains(&format!("```sh\n{text}```\n")),
            "{:?} is another",
            script.file_name()
        );
        let shebang = text.starts_with("#!/bin/sh\n");
        assert!(shebang && script.metadata().unwrap().permissions().mode() & 0o111 != 0);
    }
}

#[test]
fn cron_on_many_machines() {
    let kitchen = Kitchen::new();
    let report = kitchen.command("report", "echo ran >>\"$log\"; exit $(cat code)");
    let night = || -> Vec<_> {
        let machines: Vec<_> = (0..4)
            .map(|_| kitchen.recipe("cron").env("REPORT", &report).spawn().unwrap())
            .collect();
        machines.into_iter().map(code).collect()
    };
    fs::write(kitchen.store.dir().join("code"), "1").unwrap();
    let codes = night();
    let failed = codes.iter().filter(|code| **code == Some(1)).count();
    assert_eq!(failed, kitchen.logged().len(), "whoever fails says so: {codes:?}");
    assert!(failed > 0, "somebody has tried");
    fs::write(kitchen.store.dir().join("code"), "0").unwrap();
    for _ in 0..3 {
        assert_eq!(night(), [Some(0); 4]);
    }
    assert_eq!(kitchen.logged().len(), failed + 1, "it has succeeded once");
}

#[test]
fn deploy_lock_in_ci() {
    let kitchen = Kitchen::new();
    let deploy = kitchen.command(
        "deploy",
        "echo in $2 >>\"$log\"; until [ -e go ]; do sleep 0.01; done; echo out $2 >>\"$log\"",
    );
    let job = |number: u32| {
        let mut job = kitchen.recipe("deploy");
        job.env("DEPLOY", &deploy).env("CI_JOB_URL", format!("job {number}")).spawn().unwrap()
    };
    let mut jobs = vec![job(0)];
    kitchen.store.wait_for_counts(1, 0);
    jobs.push(job(1));
    kitchen.store.wait_for_counts(1, 1);
    jobs.push(job(2));
    kitchen.store.wait_for_counts(1, 2);
    assert_eq!(kitchen.store.holder()["label"], "job 0");
    fs::write(kitchen.store.dir().join("go"), "").unwrap();
    for job in jobs {
        assert_eq!(code(job), Some(0));
    }
    let logged = kitchen.logged();
    let fences: Vec<u64> =
        logged.iter().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!(fences.len(), 6);
    for (pair, lines) in fences.chunks(2).zip(logged.chunks(2)) {
        assert!(pair[0] == pair[1] && lines[0].starts_with("in"), "one at a time: {logged:?}");
    }
    assert!(fences.is_sorted(), "in the order of the jobs: {logged:?}");
}

#[test]
fn leader_that_follows_the_lease() {
    let kitchen = Kitchen::new();
    let lead = kitchen.command("lead", "echo $$ >>\"$log\"; while :; do sleep 0.05; done");
    let candidate = || {
        let mut candidate = kitchen.recipe("leader");
        candidate.env("LEAD", &lead).env("TTL", "1s").spawn().unwrap()
    };
    let mut first = candidate();
    eventually("the first leads", || kitchen.logged().len() == 1);
    let mut second = candidate();
    kitchen.store.wait_for_counts(1, 1);
    let leader = kitchen.store.holder();
    let run = Pid::from_raw(leader["pid"].as_i64().unwrap().try_into().unwrap()).unwrap();
    kill_process(run, Signal::KILL).unwrap();
    eventually("the second leads", || kitchen.logged().len() == 2);
    let leaders: Vec<Pid> =
        kitchen.logged().iter().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
    assert!(!common::lives(leaders[0]) && common::lives(leaders[1]), "one leads");
    assert_eq!(first.wait().unwrap().code(), Some(137));
    // Lost, it stands in line again.
    let broken = kitchen.store.output(&["break", "leader", "--yes"]);
    assert!(broken.status.success());
    eventually("it leads again", || kitchen.logged().len() == 3);
    let leader = kitchen.store.holder()["pid"].as_i64().unwrap();
    kill_process(Pid::from_raw(leader.try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(143));
}

#[test]
fn job_queue_with_hand_over() {
    let kitchen = Kitchen::new();
    let queue = kitchen.store.dir().join("queue");
    fs::create_dir(&queue).unwrap();
    let work = kitchen.command("work", "read -r job; echo \"$job $LEASEHOLD_NAME\" >>\"$log\"");
    let mut dispatcher = Section::start({
        let mut dispatcher = kitchen.recipe("dispatch");
        dispatcher.arg(&queue);
        dispatcher
    });
    for job in ["a", "b", "c", "d"] {
        dispatcher.say(job);
    }
    dispatcher.go_on();
    // Three permits are out, and the fourth job waits for one.
    kitchen.store.wait_for_counts(3, 1);
    let worker = || {
        let mut worker = kitchen.recipe("worker");
        code(worker.arg(&queue).env("WORK", &work).spawn().unwrap())
    };
    eventually("all jobs are done", || {
        assert_eq!(worker(), Some(0));
        kitchen.logged().len() == 4
    });
    assert_eq!(kitchen.logged(), ["a exports", "b exports", "c exports", "d exports"]);
    assert_eq!(dispatcher.end().code(), Some(0));
    assert_eq!(kitchen.store.counts(), (0, 0), "every permit came back");
    // A job whose permit has run out is not done.
    let late = kitchen.store.ticket(&["exports", "--permits", "3", "--ttl", "1ms"]);
    kitchen.store.wait_for_counts(0, 0);
    fs::write(queue.join("e"), format!("{late}\ne\n")).unwrap();
    assert_eq!(worker(), Some(0));
    assert_eq!(kitchen.logged().len(), 4);
}

#[test]
fn rate_limited_calls() {
    let kitchen = Kitchen::new();
    let call = kitchen.command("call", "echo \"$1\" >>\"$log\"");
    let start = Instant::now();
    let calls: Vec<_> = (0..11)
        .map(|number| {
            let mut rate = kitchen.recipe("rate");
            rate.arg(number.to_string()).env("CALL", &call).spawn().unwrap()
        })
        .collect();
    for call in calls {
        assert_eq!(code(call), Some(0));
    }
    assert_eq!(kitchen.logged().len(), 11);
    // Five in the first second, five in the next, one in the third.
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn migrations_at_start_up() {
    let kitchen = Kitchen::new();
    let migrate = kitchen.command(
        "migrate",
        "[ -e current ] && exit; [ -e broken ] && exit 3; echo migrated >>\"$log\"; sleep 0.1; touch current",
    );
    let server = kitchen.command("server", "[ -e current ] && echo served >>\"$log\"");
    let start = || {
        let mut instance = kitchen.recipe("migrate");
        instance.env("MIGRATE", &migrate).env("SERVER", &server).spawn().unwrap()
    };
    fs::write(kitchen.store.dir().join("broken"), "").unwrap();
    assert_eq!(code(start()), Some(3), "no instance starts");
    fs::remove_file(kitchen.store.dir().join("broken")).unwrap();
    let instances: Vec<_> = (0..4).map(|_| start()).collect();
    for instance in instances {
        assert_eq!(code(instance), Some(0));
    }
    let logged = kitchen.logged();
    assert_eq!(logged.iter().filter(|line| *line == "migrated").count(), 1, "{logged:?}");
    assert_eq!(logged.iter().filter(|line| *line == "served").count(), 4, "{logged:?}");
}

#[test]
fn in_the_place_of_flock() {
    let kitchen = Kitchen::new();
    let build =
        kitchen.command("build", "echo built >>\"$log\"; until [ -e go ]; do sleep 0.01; done");
    let start = || {
        let mut script = kitchen.recipe("flock");
        script.env("BUILD", &build).stderr(Stdio::null()).spawn().unwrap()
    };
    let first = start();
    eventually("it builds", || kitchen.logged().len() == 1);
    assert_eq!(code(start()), Some(1), "busy");
    fs::write(kitchen.store.dir().join("go"), "").unwrap();
    assert_eq!(code(first), Some(0));
    assert_eq!(kitchen.store.counts(), (0, 0));
    // A signal gives it back, too.
    fs::remove_file(kitchen.store.dir().join("go")).unwrap();
    let second = start();
    eventually("it builds again", || kitchen.logged().len() == 2);
    kill_process(Pid::from_child(&second), Signal::TERM).unwrap();
    // The shell hears it when its command ends.
    thread::scope(|scope| {
        scope.spawn(|| fs::write(kitchen.store.dir().join("go"), "").unwrap());
    });
    assert_eq!(code(second), Some(143));
    assert_eq!(kitchen.store.counts(), (0, 0));
    assert_eq!(kitchen.logged().len(), 2);
}

#[test]
fn flock_s_table_is_true() {
    let kitchen = Kitchen::new();
    let mut holder = kitchen.store.section(&["x"]);
    holder.is_in();
    for (args, expected) in [
        (&["--no-wait"][..], 75),
        (&["--no-wait", "-E", "1"], 1),
        (&["--wait", "50ms"], 75),
        (&["--skip"], 0),
    ] {
        let output = kitchen.store.output(&[&["run", "x"], args, &["--", "echo", "ran"]].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(expected), 0), "{args:?}");
    }
    assert_eq!(holder.finish(), Some(0));
    for args in [&["--shared"][..], &["--exclusive"], &["--close"]] {
        let output = kitchen.store.output(&[&["run", "x"], args, &["--", "echo", "ran"]].concat());
        assert_eq!(output.stdout, b"ran\n", "{args:?}");
    }
    // A script that starts itself again under the lock.
    let script = "[ \"$LEASEHOLD_NAME\" = build ] || exec leasehold run build -- \"$0\" \"$@\"";
    let own =
        kitchen.command("own", &format!("{script}\necho \"$1 under $LEASEHOLD_NAME\" >>\"$log\""));
    let path = format!("{}:{}", kitchen.store.dir().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(own);
    kitchen.store.surround(&mut command).arg("ran").env("PATH", path);
    assert!(command.status().unwrap().success());
    assert_eq!(kitchen.logged(), ["ran under build"]);
}
