//! Waiting for a lock to become free without acquiring it (rules U).

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use leasehold_core::{Error, ErrorKind, Fault, Operation, Result, Token, Wake, WatchFor, Watched};

use crate::entry::Entry;

/// Completes when `what` is, or has become, true; by `destroy` too. On a lock that was destroyed
/// before it is an error (rule U2).
pub(crate) async fn until(entry: &Arc<Entry>, what: WatchFor) -> Result<()> {
    entry.check(Operation::Watch)?;
    let core = &entry.core;
    let watch = Watch { entry, id: Token::random() };
    let end = Wake::new();
    // A shutdown ends watchers of this manager; `cancel_all` does not.
    let ended = core.ends.join(end.clone());
    let mut asking = pin!(watch.asked(what));
    let answer = poll_fn(|cx| {
        while end.poll_notified(cx).is_ready() {}
        if core.life.ended() || ended.verdict().is_some() {
            return Poll::Ready(Err(Error::new(ErrorKind::ShutDown, Operation::Watch)));
        }
        asking.as_mut().poll(cx).map(|answer| match answer {
            Ok(Watched::Destroyed) => {
                entry.mark_destroyed();
                Err(Error::new(ErrorKind::Destroyed, Operation::Watch))
            }
            Ok(_) => Ok(()),
            Err(fault) => Err(Error::from_fault(fault, Operation::Watch)),
        })
    })
    .await;
    answer.map_err(|error| error.on(&entry.id))
}

/// A watcher that is taken back when it is dropped.
struct Watch<'a> {
    entry: &'a Arc<Entry>,
    id: Token,
}

impl Watch<'_> {
    async fn asked(&self, what: WatchFor) -> Result<Watched, Fault> {
        let Entry { id, core, .. } = &**self.entry;
        loop {
            match core.backend.watch(id, self.entry.generation(), &self.id, what).await? {
                Watched::Waiting(wake) => wake.notified().await,
                answer => return Ok(answer),
            }
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.entry.core.backend.unwatch(&self.entry.id, &self.id);
    }
}
