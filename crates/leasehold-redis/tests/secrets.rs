//! No password and no token in logs, errors, metrics, reports, names of places or the `Debug` of
//! anything (rules T5, E2), whatever goes wrong with the server. All that this process says is listened
//! to, at trace level.
//!
//! One trial per kind of server; where a server is missing, its trial is listed as ignored.
#![forbid(unsafe_code)]

use std::{
    error::Error,
    fmt::{Debug, Display, Write as _},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use leasehold::LockManager;
use leasehold_redis::{RedisBackend, RedisConfig};
use libtest_mimic::{Arguments, Completion, Trial};
use test_servers::{Data, Flavor, Server};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

fn main() {
    let trials = Flavor::ALL.map(|flavor| {
        let run = move || match flavor.installed() {
            Err(missing) => Ok(Completion::ignored_with(format!("not run here: {missing}"))),
            Ok(()) => {
                tell_nobody(flavor);
                Ok(Completion::Completed)
            }
        };
        Trial::ignorable_test("no_password_and_no_token_is_told", run).with_kind(flavor.name())
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}

/// What is told nobody.
const SECRETS: [&str; 4] =
    ["cor/re#ct@ho=rse%", "wrong-battery", "later-staple", "bearer-of-a-lease"];
/// As they are written in URLs.
const ENCODED: [&str; 2] = ["cor%2Fre", "ct%40ho"];
/// Within what time a client learns that its password is another one by now.
const PATIENCE: Duration = Duration::from_secs(60);

/// Keeps everything that is told, as text.
#[derive(Clone, Debug, Default)]
struct Listener(Arc<Mutex<String>>);

/// The one of this process, for all its trials and threads.
fn listener() -> &'static Listener {
    static LISTENER: OnceLock<Listener> = OnceLock::new();
    LISTENER.get_or_init(|| {
        let listener = Listener::default();
        tracing::subscriber::set_global_default(listener.clone()).expect("nobody else listens");
        metrics::set_global_recorder(listener.clone()).expect("nobody else counts");
        listener
    })
}

impl Listener {
    fn note(&self, what: impl Debug) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(heard, "{what:?}").expect("memory");
    }

    /// As it is shown, as it is looked into, and what it came from.
    fn note_error(&self, error: &(dyn Error + 'static)) {
        self.note((format_args!("{error}"), error));
        error.source().into_iter().for_each(|source| self.note_error(source));
    }

    fn heard(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Visit for Listener {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.note((field.name(), value));
    }

    fn record_error(&mut self, _: &Field, value: &(dyn Error + 'static)) {
        self.note_error(value);
    }
}

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

mod numbers {
    use metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::Listener;

    impl Recorder for Listener {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            self.note(key);
            Counter::noop()
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            self.note(key);
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            self.note(key);
            Histogram::noop()
        }
    }
}

fn tell_nobody(flavor: Flavor) {
    let [right, wrong, later, token] = SECRETS;
    let listener = listener();
    let server = Server::builder(flavor).password(right).start().expect("installed");
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("password");
        std::fs::write(&file, format!("{right}\n")).expect("a file");
        // Wherever the password stands.
        let url = server.url_with("default", right);
        let by_parameter = format!("{}?password={}", server.url(), url_encoded(right));
        let by_file = format!("{}?password_file={}", server.url(), file.display());
        for url in [&url, &by_parameter, &by_file] {
            let config = RedisConfig::new(url).expect("a URL");
            listener.note((&config, format_args!("{config}")));
            let backend = RedisBackend::connect(config).await.expect("connects");
            listener.note((&backend, backend.url()));
            let report = backend.diagnose().await.expect("answers");
            listener.note((&report, report.findings()));
            let locks = LockManager::new(backend);
            use_locks(&locks, listener, token).await;
            locks.shutdown().await.expect("answers");
        }
        for refused in ["redis://h:no-port", "redis://h?no-parameter=1", "redis://h/no-database"] {
            let secret = refused.replace("no-", wrong);
            listener.note_error(&RedisConfig::new(&secret).expect_err("no URL"));
            listener.note_error(&leasehold::connect(&secret).await.expect_err("no URL"));
        }
        listener.note_error(&leasehold::connect(&server.url()).await.expect_err("no password"));
        let with_wrong = server.url_with("default", wrong);
        listener.note_error(&leasehold::connect(&with_wrong).await.expect_err("another password"));

        // Connections that are cut, scripts that are forgotten, a server that is started anew.
        let locks = leasehold::connect(&url).await.expect("connects");
        for turn in 0..3 {
            server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
            server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
            server.command(&["SCRIPT", "FLUSH"]);
            if turn == 1 {
                server.restart(Data::Lost);
            }
            use_locks(&locks, listener, token).await;
        }
        // The password is another one from now on, and the client does not know it.
        let mutex = locks.mutex("orders").expect("a name");
        let kept = mutex.lock().await.expect("free");
        let cut = [["CLIENT", "KILL", "TYPE", "normal"], ["CLIENT", "KILL", "TYPE", "pubsub"]];
        server.command(&["CONFIG", "SET", "requirepass", later]);
        server_command(&server, later, &cut);
        let begun = Instant::now();
        while let Err(error) = mutex.inspect().await {
            listener.note_error(&error);
            if error.to_string().contains("WRONGPASS") {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "it still has a connection");
        }
        listener.note_error(&kept.release().await.expect_err("nothing is answered"));
        listener.note((&kept, &locks));
        drop(kept);
        listener.note(locks.shutdown().await);
    });
    let heard = listener.heard();
    for proof in ["not granted", "leasehold_grants_total", "WRONGPASS", "connected again"] {
        assert!(heard.contains(proof), "{proof}: nobody listened");
    }
    for secret in SECRETS.into_iter().chain(ENCODED) {
        let at = heard.find(secret).map(|at| &heard[at.saturating_sub(300)..at]);
        assert!(at.is_none(), "{secret} was told after: {at:?}");
    }
}

/// Everything that says something about a lock.
async fn use_locks(locks: &LockManager, listener: &Listener, token: &str) {
    let token = leasehold::Token::new(token).expect("a token");
    let mutex = locks.mutex("orders").expect("a name");
    let asking = mutex.lock().token(token.clone());
    listener.note((locks, &mutex, &asking));
    let lease = asking.await.expect("free");
    listener.note((&lease, mutex.inspect().await, locks.survey().await, locks.snapshot().await));
    let waiting = mutex.lock().timeout(Duration::from_millis(20)).await;
    listener.note_error(&waiting.expect_err("it is held"));
    let again = locks.mutex("orders").expect("a name").lock().token(token).await;
    listener.note_error(&again.expect_err("the token is in use"));
    let ticket = lease.into_ticket().await.expect("has a TTL");
    let restored = locks.restore(&ticket).expect("a ticket");
    listener.note((&ticket, &restored, restored.remaining().await));
    listener.note((restored.release().await, restored.release().await));
}

/// Asks as an administrator who knows the password.
fn server_command(server: &Server, password: &str, commands: &[[&str; 4]]) {
    let url = server.url_with("default", password);
    let client = redis::Client::open(url).expect("a URL");
    let mut connection = client.get_connection().expect("connects");
    for [command, rest @ ..] in commands {
        // Its own connection may be among those that are cut.
        let _: Result<redis::Value, _> = redis::cmd(command).arg(rest).query(&mut connection);
    }
}

fn url_encoded(text: &str) -> impl Display {
    text.bytes().fold(String::new(), |mut url, byte| {
        write!(url, "%{byte:02X}").expect("memory");
        url
    })
}
