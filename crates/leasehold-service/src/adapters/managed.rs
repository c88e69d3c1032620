//! An instance that is a [`LockManager`]: all adapters that are built in.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use leasehold::{Error, ErrorKind, FencingToken, Lease, LockManager, Operation, Result, Ttl};

use crate::adapter::{BoxFuture, Grant, Instance, Request, Wait};

/// Whether grants have a TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Until released, or until the process ends.
    Unlimited,
    /// A TTL that is renewed for as long as the lease lives.
    Renewed,
}

/// Opens the store; called again after a failure.
type Open = Box<dyn Fn() -> BoxFuture<'static, Result<LockManager>> + Send + Sync>;

pub(crate) struct Managed {
    lifetime: Lifetime,
    open: Open,
    manager: Mutex<Option<LockManager>>,
}

impl Managed {
    pub(crate) fn new(
        lifetime: Lifetime,
        open: impl Fn() -> BoxFuture<'static, Result<LockManager>> + Send + Sync + 'static,
    ) -> Self {
        Self { lifetime, open: Box::new(open), manager: Mutex::new(None) }
    }

    fn manager(&self) -> Option<LockManager> {
        self.manager.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Instance for Managed {
    fn start(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            let manager = (self.open)().await?;
            *self.manager.lock().unwrap_or_else(PoisonError::into_inner) = Some(manager);
            Ok(())
        })
    }

    fn request(&self, request: Request) -> BoxFuture<'static, Result<Option<Box<dyn Grant>>>> {
        let manager = self.manager();
        let lifetime = self.lifetime;
        Box::pin(async move {
            let Some(manager) = manager else {
                return Err(Error::new(ErrorKind::NotReady, Operation::Acquire).on(&request.lock));
            };
            acquire(&manager, request, lifetime).await
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            match self.manager() {
                Some(manager) => manager.shutdown().await,
                None => Ok(()),
            }
        })
    }
}

async fn acquire(
    manager: &LockManager,
    request: Request,
    lifetime: Lifetime,
) -> Result<Option<Box<dyn Grant>>> {
    let Request { lock, ttl, wait, interrupt } = request;
    let timeout = match wait {
        Wait::Forever => None,
        Wait::AtMost(budget) => Some(budget),
    };
    let ttl = match lifetime {
        Lifetime::Unlimited => None,
        Lifetime::Renewed => Some(ttl.unwrap_or(Ttl::DEFAULT).get()),
    };
    let mutex = manager.mutex(lock.name().as_str())?;
    let attempt = mutex.try_lock().timeout(timeout).ttl(ttl).renew();
    let lease = attempt.cancel_on(async move {
        interrupt.await;
        "nobody waits for it any more"
    });
    Ok(lease.await?.map(|lease| Box::new(Granted(lease)) as Box<dyn Grant>))
}

struct Granted(Lease);

impl Grant for Granted {
    fn release(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(self.0.release())
    }

    fn lost(&self) -> BoxFuture<'_, Error> {
        Box::pin(self.0.lost())
    }

    fn is_held(&self) -> bool {
        self.0.is_held()
    }

    fn fencing_token(&self) -> Option<FencingToken> {
        Some(self.0.fencing_token())
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed").field("manager", &self.manager()).finish_non_exhaustive()
    }
}
