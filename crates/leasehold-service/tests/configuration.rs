//! Configuration: strict, all mistakes at once, each with its path (rule S1, acceptance N1 to N10).

use std::{fs, sync::Arc, time::Duration};

use leasehold_service::{
    ConfigError, EntryConfig, ErrorKind, LockService, ManualClock, ServiceBuilder, ServiceConfig,
    Sources, load,
};

fn toml(text: &str) -> ServiceConfig {
    Sources::new().toml(text).variables::<String, String>([]).load().unwrap()
}

fn builder(text: &str) -> ServiceBuilder {
    LockService::builder("shop").config(toml(text))
}

fn mistakes(text: &str) -> Vec<String> {
    booted(toml(text))
}

fn booted(config: ServiceConfig) -> Vec<String> {
    told(LockService::builder("shop").config(config).boot().unwrap_err())
}

fn told(error: ConfigError) -> Vec<String> {
    error.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn n2_the_built_in_default_is_an_entry_with_the_adapter_mutex() {
    for service in [
        LockService::builder("shop").config(ServiceConfig::new()).boot().unwrap(),
        builder("").boot().unwrap(),
    ] {
        assert_eq!(service.entries().collect::<Vec<_>>(), ["local"]);
        let started = pollster::block_on(service.start()).unwrap();
        let manager = started.default_manager().unwrap();
        assert_eq!((manager.entry(), manager.namespace().as_str()), ("local", "shop"));
    }
}

#[test]
fn n2_the_variable_for_the_default_entry_goes_over_the_file() {
    let text = "default = 'local'\n[entries.local]\nadapter = 'mutex'\n[entries.jobs]\n\
                adapter = 'memory'\nnamespace = 'jobs'\n";
    let chosen = |name: &str| {
        let sources = Sources::new().toml(text).variables([("LEASEHOLD_DEFAULT", name)]);
        LockService::builder("shop").config(sources.load().unwrap()).boot()
    };
    let service = pollster::block_on(chosen("jobs").unwrap().start()).unwrap();
    assert_eq!(service.default_manager().unwrap().entry(), "jobs");
    let wrong = told(chosen("jbos").unwrap_err());
    assert_eq!(
        wrong,
        ["default: no entry is called \"jbos\"; there are jobs, local \
                        (LEASEHOLD_DEFAULT overrides the file)"]
    );
}

#[test]
fn n2_variables_set_fields_of_entries() {
    let variables = [
        ("LEASEHOLD_ENTRIES__JOBS__ADAPTER", "memory"),
        ("LEASEHOLD_ENTRIES__JOBS__NAMESPACE", "123"),
        ("LEASEHOLD_ENTRIES__JOBS__TTL", "5000"),
        ("LEASEHOLD_ENTRIES__JOBS__ENABLED", "true"),
        ("LEASEHOLD_STORE", "of another program"),
    ];
    let config = Sources::new().variables(variables).load().unwrap();
    let service = LockService::builder("shop").config(config).boot().unwrap();
    let service = pollster::block_on(service.start()).unwrap();
    let jobs = pollster::block_on(service.manager("jobs")).unwrap();
    assert_eq!(jobs.namespace().as_str(), "123");

    let variables = [("LEASEHOLD_ENTRIES__LOCAL__TTL", "soon")];
    let config = Sources::new().variables(variables).load().unwrap();
    let wrong = told(LockService::builder("shop").config(config).boot().unwrap_err());
    assert_eq!(
        wrong,
        [
            "entries.local.adapter: is missing",
            "entries.local.ttl: a text is not a whole number in 1..=2147483647",
        ]
    );
}

#[test]
fn n1_n3_n4_n5_n6_every_mistake_is_told_at_once_with_its_path() {
    let text = "\
        default = 'main'\n\
        colour = 'red'\n\
        [entries.jobs]\n\
        adapter = 'sqlite'\n\
        ttl = 0\n\
        retries = 3\n\
        [entries.cache]\n\
        adapter = 'memcached'\n\
        [entries.local]\n\
        adapter = 'mutex'\n\
        connection = { url = 'redis://:hunter2@x' }\n\
        enabled = 'yes'\n\
        [entries.bare]\n\
        namespace = ''\n\
        [entries.wrong]\n\
        adapter = 'sqlite'\n\
        [entries.wrong.connection]\n\
        url = 'redis://:hunter2@x'\n\
        pool = 4\n";
    let told = mistakes(text);
    let adapters = "memory, mutex, sqlite";
    let expected = [
        "colour: unknown field; there are default, entries".to_owned(),
        "default: no entry is called \"main\"; there are bare, cache, jobs, local, wrong \
         (LEASEHOLD_DEFAULT overrides the file)"
            .into(),
        "entries.bare.adapter: is missing".into(),
        "entries.bare.namespace: a namespace must not be empty".into(),
        format!("entries.cache.adapter: no adapter is called \"memcached\"; there are {adapters}"),
        "entries.jobs.connection.url: is missing".into(),
        "entries.jobs.retries: unknown field; there are adapter, connection, enabled, namespace, \
         ttl"
        .into(),
        "entries.jobs.ttl: 0 is not in 1..=2147483647".into(),
        "entries.local.connection: the adapter mutex lives in this process, there is nothing to \
         connect to"
            .into(),
        "entries.local.enabled: \"yes\" is not true or false".into(),
        "entries.wrong.connection.pool: unknown field; there are url".into(),
        "entries.wrong.connection.url: a SQLite store is named sqlite:PATH".into(),
    ];
    let told: Vec<_> = told.into_iter().map(without_redis).collect();
    assert_eq!(told, expected);
}

/// The list of adapters has one more with the feature `redis`.
fn without_redis(told: String) -> String {
    told.replace("mutex, redis, sqlite", "mutex, sqlite")
}

#[test]
fn n1_an_application_without_a_name_is_told() {
    let error = LockService::builder("").config(ServiceConfig::new()).boot().unwrap_err();
    assert_eq!(told(error), ["application: a namespace must not be empty"]);
}

#[test]
fn n6_a_ttl_is_a_whole_number_of_milliseconds_in_its_range() {
    for (ttl, shown) in [
        ("0", "0 is not in 1..=2147483647"),
        ("-1", "-1 is not in 1..=2147483647"),
        ("2147483648", "2147483648 is not in 1..=2147483647"),
        ("1.5", "1.5 is not a whole number in 1..=2147483647"),
        ("'500'", "\"500\" is not a whole number in 1..=2147483647"),
        ("true", "true is not a whole number in 1..=2147483647"),
    ] {
        let told = mistakes(&format!("[entries.local]\nadapter = 'mutex'\nttl = {ttl}\n"));
        assert_eq!(told, [format!("entries.local.ttl: {shown}")]);
    }
    for ttl in ["1", "2147483647"] {
        builder(&format!("[entries.local]\nadapter = 'mutex'\nttl = {ttl}\n")).boot().unwrap();
    }
}

#[test]
fn n8_entries_inherit_nothing() {
    let told = mistakes(
        "default = 'a'\n[entries.a]\nadapter = 'memory'\nttl = 5000\nnamespace = 'a'\n\
         [entries.b]\nttl = 1000\n",
    );
    assert_eq!(told, ["entries.b.adapter: is missing"]);
}

#[test]
fn n9_n10_two_local_entries_with_one_namespace_are_refused() {
    let two = |one: &str, other: &str| {
        let entry = |name: &str, rest: &str| format!("[entries.{name}]\n{rest}\n");
        let text = format!("default = 'a'\n{}{}", entry("a", one), entry("b", other));
        builder(&text).boot().map(drop).map_err(told)
    };
    let refused = Err(vec![
        "entries.b.namespace: \"shop\" is the namespace of entries.a too, and both live in this \
         process"
            .to_owned(),
    ]);
    assert_eq!(two("adapter = 'mutex'", "adapter = 'memory'"), refused, "both by default");
    assert_eq!(two("adapter = 'mutex'\nnamespace = 'shop'", "adapter = 'mutex'"), refused);
    assert_eq!(two("adapter = 'mutex'", "adapter = 'memory'\nnamespace = 'other'"), Ok(()));
    assert_eq!(two("adapter = 'mutex'", "adapter = 'memory'\nenabled = false"), Ok(()));
    let sqlite = "adapter = 'sqlite'\nconnection.url = 'sqlite:x.db'";
    assert_eq!(two("adapter = 'mutex'", sqlite), Ok(()), "a shared store is no local entry");
}

#[test]
fn n4_a_default_entry_that_is_not_enabled_is_refused() {
    let told = mistakes("default = 'a'\n[entries.a]\nadapter = 'mutex'\nenabled = false\n");
    assert_eq!(
        told,
        ["default: the entry \"a\" is not enabled (LEASEHOLD_DEFAULT overrides the file)"]
    );
}

#[test]
fn n5_in_process_adapters_take_no_connection() {
    for adapter in ["mutex", "memory"] {
        let text = format!("[entries.local]\nadapter = '{adapter}'\nconnection = {{}}\n");
        let told = mistakes(&text);
        assert!(told[0].starts_with("entries.local.connection: "), "{told:?}");
    }
}

#[test]
fn n15_validation_does_no_io() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("locks.db");
    let text = format!(
        "default = 'jobs'\n[entries.jobs]\nadapter = 'sqlite'\nconnection.url = 'sqlite:{}'\n",
        path.display()
    );
    let service = builder(&text).boot().unwrap();
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "nothing was made");
    let service = pollster::block_on(service.start()).unwrap();
    assert!(path.exists());
    pollster::block_on(service.shutdown()).unwrap();
}

#[test]
fn n14_what_changes_after_boot_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("locks.toml");
    let with = |namespace: &str| {
        format!("[entries.jobs]\nadapter = 'memory'\nnamespace = '{namespace}'\n")
    };
    fs::write(&file, with("before")).unwrap();
    let service = LockService::builder("shop").config(load(&file).unwrap()).boot().unwrap();
    fs::write(&file, "nonsense = [").unwrap();
    let service = pollster::block_on(service.start()).unwrap();
    // The entry `jobs` was not started yet.
    let jobs = pollster::block_on(service.manager("jobs")).unwrap();
    assert_eq!(jobs.namespace().as_str(), "before");
    assert!(load(&file).is_err());
}

#[test]
fn variables_and_files_are_resolved_while_loading_and_missing_ones_stand_in_the_list() {
    let place = tempfile::tempdir().unwrap();
    let secret = place.path().join("secret");
    fs::write(&secret, "hunter2\n").unwrap();
    let text = format!(
        "default = '${{NO_DEFAULT}}'\n[entries.jobs]\nadapter = '${{JOBS_ADAPTER:-memory}}'\n\
         namespace = 'a$$b ${{NAME}} ${{file:{}}}'\nttl = 0\n\
         [entries.other]\nadapter = 'sqlite'\nconnection.url = '${{file:/no/such/file}}'\n",
        secret.display()
    );
    let config = Sources::new().toml(&text).variables([("NAME", "x")]).load().unwrap();
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    let told = told(LockService::builder("shop").config(config).boot().unwrap_err());
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0], "default: the environment variable NO_DEFAULT is not set");
    assert_eq!(told[1], "entries.jobs.ttl: 0 is not in 1..=2147483647");
    let start = "entries.other.connection.url: the file /no/such/file cannot be read: ";
    assert!(told[2].starts_with(start), "{told:?}");

    let text = text.replace("${NO_DEFAULT}", "jobs").replace("ttl = 0", "ttl = '${TTL}'");
    let text = text.replace("${file:/no/such/file}", "sqlite:x.db");
    let sources = Sources::new().toml(text).variables([("NAME", "x"), ("TTL", "5000")]);
    let service = LockService::builder("shop").config(sources.load().unwrap()).boot().unwrap();
    let service = pollster::block_on(service.start()).unwrap();
    let manager = service.default_manager().unwrap();
    assert_eq!(manager.namespace().as_str(), "a$b x hunter2");
}

#[test]
fn secrets_are_never_shown() {
    let text = "[entries.jobs]\nadapter = 'sqlite'\n[entries.jobs.connection]\n\
                url = 'hunter2'\npool = 'hunter2'\npassword = 77\n";
    let config = toml(text);
    assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
    assert!(!format!("{config:?}").contains("77"), "{config:?}");
    let builder = LockService::builder("shop").config(config);
    assert!(!format!("{builder:?}").contains("hunter2"));
    let error = builder.boot().unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    let broken = Sources::new().toml("connection = 'hunter2").variables::<&str, &str>([]).load();
    let error = broken.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    let entry = EntryConfig::new("redis").connection("url", "hunter2");
    assert!(!format!("{entry:?}").contains("hunter2"));
    let told = booted(toml("[entries.jobs]\nadapter = 'sqlite'\nconnection = 'u:hunter2@h'\n"));
    assert_eq!(told, ["entries.jobs.connection: a text is not a table"]);
    let told = booted(toml("[entries.jobs]\nadapter = 'sqlite'\nconnection = 4711\n"));
    assert_eq!(told, ["entries.jobs.connection: a whole number is not a table"]);
    for (format, text) in
        [("json", "\"u:hunter2@h\""), ("json", "{\"a\": hunter2}"), ("toml", "hunter2")]
    {
        let sources = Sources::new().variables::<&str, &str>([]);
        let sources = if format == "json" { sources.json(text) } else { sources.toml(text) };
        let error = sources.load().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn values_of_variables_are_never_shown() {
    let secret = [("DB", "u:hunter2@h")];
    let load = |text: &str| Sources::new().toml(text).variables(secret).load().unwrap();
    let told = booted(load("default = '${DB}'\n[entries.jobs]\nadapter = '${DB}'\n"));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("default: no entry is called as the variable says"), "{told:?}");
    assert!(told[1].starts_with("entries.jobs.adapter: no adapter is called as"), "{told:?}");
}

#[test]
fn paths_are_written_as_toml_has_them_and_letters_count() {
    let told = booted(toml("[entries.'b.c']\nadapter = 'memory'\nnamespace = 'b'\nttl = 0\n"));
    assert_eq!(told, ["entries.\"b.c\".ttl: 0 is not in 1..=2147483647"]);
    let over = [("LEASEHOLD_ENTRIES__JOBS__TTL", "5000")];
    let text = "[entries.Jobs]\nadapter = 'memory'\nnamespace = 'jobs'\n";
    let told = booted(Sources::new().toml(text).variables(over).load().unwrap());
    let expected = [
        "entries.jobs: is not entries.Jobs; variables set entries in lower case only",
        "entries.jobs.adapter: is missing",
    ];
    assert_eq!(told, expected);
}

/// The test itself again, in a process with such an environment.
#[test]
fn variables_that_are_no_text_are_told_only_where_they_matter() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, process::Command};
    const INSIDE: &str = "LEASEHOLD_TEST_INSIDE";
    if let Ok(what) = std::env::var(INSIDE) {
        let loaded = Sources::new().toml("[entries.local]\nadapter = '${WEIRD:-mutex}'\n").load();
        if what == "ours" {
            assert_eq!(told(loaded.unwrap_err()), ["LEASEHOLD_DEFAULT: is not UTF-8"]);
        } else {
            let told = booted(loaded.unwrap());
            assert_eq!(
                told,
                ["entries.local.adapter: the environment variable WEIRD is not UTF-8"]
            );
        }
        return;
    }
    for (what, name) in [("ours", "LEASEHOLD_DEFAULT"), ("named", "WEIRD")] {
        let test = "variables_that_are_no_text_are_told_only_where_they_matter";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(INSIDE, what)
            .env(name, OsStr::from_bytes(b"\xff\xfe"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{what}: {said}");
    }
}

#[test]
fn an_unknown_entry_is_wrong_at_any_time() {
    let service = LockService::builder("shop").boot().unwrap();
    pollster::block_on(async {
        for started in [false, true] {
            let error = service.manager("unknown").await.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{started} {error}");
            service.start().await.unwrap();
        }
    });
}

#[test]
fn json_serde_and_layers_say_the_same() {
    let json = r#"{"default": "jobs", "entries": {"jobs": {"adapter": "memory", "ttl": 0}}}"#;
    let over = "[entries.jobs]\nttl = -1\n";
    let layered = Sources::new().json(json).toml(over).variables::<&str, &str>([]).load().unwrap();
    let boot = |config| told(LockService::builder("shop").config(config).boot().unwrap_err());
    assert_eq!(boot(layered), ["entries.jobs.ttl: -1 is not in 1..=2147483647"]);
    let own: ServiceConfig = serde_json::from_str(json).unwrap();
    assert_eq!(boot(own), ["entries.jobs.ttl: 0 is not in 1..=2147483647"]);
    let unresolved: ServiceConfig =
        serde_json::from_str(r#"{"entries": {"local": {"adapter": "${A}"}}}"#).unwrap();
    let told = boot(unresolved);
    assert!(told[0].contains("not resolved"), "{told:?}");
    assert_eq!(
        boot(serde_json::from_str("7").unwrap())[0],
        "configuration: a whole number is not a table"
    );
}

#[test]
fn n32_the_adapter_mutex_checks_a_ttl_and_ignores_it() {
    let clock = Arc::new(ManualClock::new());
    let config = ServiceConfig::new().entry("local", EntryConfig::new("mutex").ttl_ms(200));
    let builder = LockService::builder("shop").config(config).clock(Arc::clone(&clock) as _);
    pollster::block_on(async {
        let service = builder.boot().unwrap().start().await.unwrap();
        let orders = service.default_manager().unwrap().lock("orders").unwrap();
        let own = orders.clone().ttl(Duration::from_millis(100)).unwrap();
        for lock in [&orders, &own] {
            let lease = lock.lock().await.unwrap();
            clock.advance(Duration::from_secs(3_600));
            assert!(lease.is_held());
            assert!(orders.try_lock(Duration::ZERO).await.unwrap().is_none());
            assert!(lease.release().await.unwrap());
        }
        let lease = orders.lock().await.unwrap();
        service.shutdown().await.unwrap();
        assert!(!lease.is_held());
    });
}

#[test]
fn n39_keys_are_injective_over_namespace_and_name() {
    use leasehold_service::{Namespace, kit::resource_key};
    let parts = ["a", "b", "a/b", "a/mutex/b", "%2F", "/", ":", "{a}", " ", "\n", "🦀", "\0", "A"];
    let mut keys = std::collections::HashMap::new();
    for namespace in parts {
        for name in parts {
            let key = resource_key(&Namespace::new(namespace).unwrap(), name).unwrap();
            assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{key:?}");
            let other = keys.insert(key, (namespace, name));
            assert_eq!(other, None, "{namespace:?} {name:?}");
        }
    }
}
