//! What may be done to one grant: renew, extend, rebind, ask what is left (rules T4, T8, L2).

use super::{lock::Lock, step::Step};
use crate::{
    Binding, Capacity, ClientId, Extended, Fault, FaultKind, Grant, Remaining, Renewed, Token, Ttl,
};

impl Lock {
    /// See [`Backend::renew`](crate::Backend::renew).
    pub(super) fn renew(&mut self, token: &Token, step: &mut Step<'_>) -> Renewed {
        let now = step.now();
        let renewed = self.book.grants.change(token, |holder| {
            holder.renew(now);
            Renewed::Held { remaining: holder.expiry.map(|expiry| expiry.since(now)) }
        });
        renewed.unwrap_or(Renewed::Unknown)
    }

    /// See [`Backend::extend`](crate::Backend::extend).
    pub(super) fn extend(
        &mut self,
        token: &Token,
        ttl: Option<Ttl>,
        step: &mut Step<'_>,
    ) -> Extended {
        let now = step.now();
        let extended = self.book.grants.change(token, |holder| {
            if ttl.is_none() && holder.binding == Binding::Token {
                return Extended::NeedsTtl;
            }
            holder.ttl = ttl;
            holder.expiry = ttl.map(|ttl| now.after(ttl.get()));
            Extended::Held
        });
        extended.unwrap_or(Extended::Gone)
    }

    /// See [`Backend::rebind`](crate::Backend::rebind).
    pub(super) fn rebind(
        &mut self,
        token: &Token,
        binding: Binding,
        ttl: Option<Ttl>,
        client: ClientId,
        step: &mut Step<'_>,
    ) -> Result<Option<Grant>, Fault> {
        let now = step.now();
        let rebound = self.book.grants.change(token, |holder| {
            if binding == Binding::Token && ttl.or(holder.ttl).is_none() {
                return Err(needs_ttl());
            }
            holder.binding = binding;
            holder.client = client;
            if ttl.is_some() {
                holder.ttl = ttl;
                holder.expiry = ttl.map(|ttl| now.after(ttl.get()));
            }
            Ok(())
        });
        match rebound.transpose()? {
            Some(()) => Ok(self.grant_of(token, step)),
            None => Ok(None),
        }
    }

    /// See [`Backend::remaining`](crate::Backend::remaining).
    pub(super) fn remaining(&self, token: &Token, step: &mut Step<'_>) -> Remaining {
        match self.book.grants.get(token).map(|holder| holder.expiry) {
            None => Remaining::Gone,
            Some(None) => Remaining::Never,
            Some(Some(expiry)) => Remaining::Left(expiry.since(step.now())),
        }
    }

    /// A grant as it is answered.
    pub(super) fn grant_of(&self, token: &Token, step: &mut Step<'_>) -> Option<Grant> {
        let holder = self.book.grants.get(token)?;
        Some(Grant {
            fencing: holder.fencing,
            remaining: holder.expiry.map(|expiry| expiry.since(step.now())),
            ttl: holder.ttl,
            at: Some(step.now()),
            generation: self.generation,
            capacity: self.registered.unwrap_or(Capacity::ONE),
        })
    }
}

/// A grant that only its token can end must end by itself (rule T8).
pub(super) fn needs_ttl() -> Fault {
    Fault::new(FaultKind::Unsupported, "a grant that is bound to its token needs a TTL")
}
