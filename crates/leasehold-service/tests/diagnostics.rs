//! What is observed: every name of the table is in the code and the other way round, and the numbers
//! say what happened.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold_service::{EntryConfig, LockService, ServiceConfig, What, observe};
use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

#[test]
fn the_table_of_the_guide_names_what_the_code_names() {
    let code = include_str!("../src/observe.rs");
    let guide = include_str!("../../../docs/service.md");
    let named = |text: &str, quote: &str| -> BTreeSet<String> {
        let words = text.split(quote).map(str::to_owned);
        let ours = |word: &String| {
            let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            let begins = ["leasehold_service_", "lock_service_"];
            begins.iter().any(|begin| word.starts_with(begin)) && word.bytes().all(is_name)
        };
        words.filter(ours).collect()
    };
    let code = named(code, "\"");
    assert!(code.len() > 10, "{code:?}");
    assert_eq!(code, named(guide, "`"));
}

/// Counts of counters, and how many values histograms got, by name and reason.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<BTreeMap<String, u64>>>);

struct Number(Numbers, String);

impl Number {
    fn of(numbers: &Numbers, key: &Key) -> Arc<Self> {
        let labels: BTreeMap<_, _> =
            key.labels().map(|label| (label.key(), label.value())).collect();
        assert_eq!((labels["entry"], labels["adapter"]), ("local", "mutex"), "{key:?}");
        let extra = labels.get("reason").map(|reason| format!(" {reason}")).unwrap_or_default();
        Arc::new(Self(numbers.clone(), format!("{}{extra}", key.name())))
    }

    fn add(&self, by: u64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += by;
    }
}

impl CounterFn for Number {
    fn increment(&self, by: u64) {
        self.add(by);
    }

    fn absolute(&self, _: u64) {
        unreachable!("counters are incremented");
    }
}

impl HistogramFn for Number {
    fn record(&self, value: f64) {
        assert!(value >= 0.0);
        self.add(1);
    }
}

impl Recorder for Numbers {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        // The managers beneath have numbers of their own.
        match key.name().starts_with("leasehold_service_") {
            true => Counter::from_arc(Number::of(self, key)),
            false => Counter::noop(),
        }
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match key.name().starts_with("leasehold_service_") {
            true => Histogram::from_arc(Number::of(self, key)),
            false => Histogram::noop(),
        }
    }
}

#[test]
fn the_numbers_say_what_happened() {
    let numbers = Numbers::default();
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    metrics::with_local_recorder(&numbers, || {
        pollster::block_on(async {
            let config = ServiceConfig::new().entry("local", EntryConfig::new("mutex"));
            let builder = LockService::builder("shop").config(config);
            let builder = builder.diagnostics(move |told| sink.lock().unwrap().push(told.clone()));
            let service = builder.boot().unwrap().start().await.unwrap();
            let orders = service.default_manager().unwrap().lock("orders").unwrap();
            let lease = orders.lock().await.unwrap();
            assert!(orders.try_lock(Duration::ZERO).await.unwrap().is_none());
            lease.release().await.unwrap();
            drop(orders.lock().await.unwrap());
            service.shutdown().await.unwrap();
        });
    });
    let numbers = numbers.0.lock().unwrap();
    let expected = [
        (observe::DROPPED.to_owned(), 1),
        (observe::GRANTS.to_owned(), 2),
        (observe::HOLD_SECONDS.to_owned(), 2),
        (format!("{} busy", observe::REFUSALS), 1),
        (observe::WAIT_SECONDS.to_owned(), 2),
    ];
    assert_eq!(*numbers, BTreeMap::from(expected));
    let told = told.lock().unwrap();
    assert!(matches!(told.as_slice(), [one] if matches!(one.what(), What::Dropped { .. })));
    assert_eq!(told[0].entry(), "local");
}
