//! A master that is parted from the sentinels goes on granting, and those who cannot reach them go on
//! believing it. Fencing tokens keep them from the storage.

use std::time::Duration;

use test_servers::{Flavor, Sentinels, wait_until};

use crate::{
    PATIENCE, Test, run,
    scene::{Register, connect, is_renewed},
};

pub(crate) const TESTS: &[Test] = &[
    ("a_holder_at_a_parted_master_is_fenced_off", a_holder_at_a_parted_master_is_fenced_off),
    ("clients_leave_a_master_that_was_replaced", clients_leave_a_master_that_was_replaced),
];

/// So short that it soon runs out where nobody renews it.
const TTL: Duration = Duration::from_secs(3);

fn a_holder_at_a_parted_master_is_fenced_off(flavor: Flavor) {
    let all = Sentinels::start(flavor, 1).expect("installed");
    run(async {
        // On the same side as the old master.
        let parted = connect(&all.server(0).url()).await;
        let others = connect(&format!("{}?command_timeout_ms=20000", all.url())).await;
        let register = Register::default();
        let old = parted.mutex("orders").expect("a name").lock().ttl(TTL).renew();
        let old = old.await.expect("free");
        assert!(register.write(&old));
        all.part();
        assert_eq!(all.wait_for_another(Some(0)), 1);
        let new = others.mutex("orders").expect("a name").lock().ttl(PATIENCE).timeout(PATIENCE);
        let new = new.await.expect("the old one runs out where nobody renews it");
        // Both believe that they hold it, and rightly by what their stores say.
        is_renewed(&old, TTL).await;
        assert!(old.is_held() && new.is_held());
        assert!(new.fencing_token() > old.fencing_token());
        assert!(register.write(&new));
        assert!(!register.write(&old), "the storage took a write of who was replaced");
        assert!(register.write(&new));
    });
}

/// They still reach the old master, which answers and does not know.
fn clients_leave_a_master_that_was_replaced(flavor: Flavor) {
    let all = Sentinels::start(flavor, 1).expect("installed");
    run(async {
        let locks = connect(&format!("{}?command_timeout_ms=20000", all.url())).await;
        let held = locks.mutex("held").expect("a name").lock().ttl(PATIENCE).await.expect("free");
        all.part_from_sentinels();
        assert_eq!(all.wait_for_another(Some(0)), 1);
        assert!(all.is_master(0), "nobody could tell it");
        let has = |server: usize, name: &str| {
            let keys = all.server(server).command(&["KEYS", &format!("*{name}*")]);
            !keys.items().is_empty()
        };
        assert!(has(1, "held"), "it was replicated");
        let mut grants = 0;
        // The sentinels are asked now and then, so some grants are still of the old one.
        wait_until("grants are of the new master", || {
            grants += 1;
            let name = format!("grant-{grants}");
            let mutex = locks.mutex(name.as_str()).expect("a name");
            drop(pollster::block_on(mutex.lock().ttl(PATIENCE)).expect("free"));
            has(1, &name)
        });
        assert!(held.extend(PATIENCE).await.expect("answers"), "it is there, too");
        assert!(held.release().await.expect("answers"), "it was held");
        locks.shutdown().await.expect("answers");
    });
}
