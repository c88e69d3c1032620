//! The grants of one lock: by token, by expiry and in the order in which they were made.
//!
//! Most locks have one holder or a few; a short list is searched faster than an index, and a
//! mutex that is taken and released over and over allocates nothing. A lock with many holders gets
//! an index, so that no operation scans them (rule Q6).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::{AttemptId, Binding, ClientId, FencingToken, HolderInfo, LocalTime, Share, Token, Ttl};

/// The longest list without an index.
const FEW: usize = 8;

/// One grant.
pub(super) struct Holder {
    pub(super) token: Token,
    pub(super) attempt: AttemptId,
    pub(super) client: ClientId,
    pub(super) binding: Binding,
    pub(super) share: Share,
    pub(super) weight: u32,
    pub(super) fencing: FencingToken,
    pub(super) since: LocalTime,
    pub(super) expiry: Option<LocalTime>,
    pub(super) ttl: Option<Ttl>,
    /// Granted after a wait and not confirmed yet (rule L10).
    pub(super) claimed: bool,
    pub(super) info: Arc<HolderInfo>,
}

impl Holder {
    /// The full TTL from `now` on; it never shortens what is left (rule L2).
    pub(super) fn renew(&mut self, now: LocalTime) {
        if let Some(ttl) = self.ttl {
            self.expiry = self.expiry.max(Some(now.after(ttl.get())));
        }
    }

    /// Turns a claim into a grant (rule L10). For a grant it is a renewal.
    pub(super) fn confirm(&mut self, now: LocalTime) {
        match self.ttl {
            Some(_) => self.renew(now),
            None => self.expiry = None,
        }
        self.claimed = false;
    }
}

/// See the module.
pub(super) enum Grants {
    Few(Vec<Holder>),
    Many(Box<Index>),
}

#[derive(Default)]
pub(super) struct Index {
    by_fencing: BTreeMap<FencingToken, Holder>,
    by_token: HashMap<Token, FencingToken>,
    by_expiry: BTreeSet<(LocalTime, FencingToken)>,
}

impl Grants {
    pub(super) const fn new() -> Self {
        Self::Few(Vec::new())
    }

    /// The oldest grant.
    pub(super) fn first(&self) -> Option<&Holder> {
        match self {
            Self::Few(list) => list.first(),
            Self::Many(index) => index.by_fencing.values().next(),
        }
    }

    /// In the order of the grants.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Holder> {
        let (few, many) = match self {
            Self::Few(list) => (list.as_slice(), None),
            Self::Many(index) => ([].as_slice(), Some(index)),
        };
        few.iter().chain(many.into_iter().flat_map(|index| index.by_fencing.values()))
    }

    pub(super) fn get(&self, token: &Token) -> Option<&Holder> {
        match self {
            Self::Few(list) => list.iter().find(|holder| holder.token == *token),
            Self::Many(index) => index.by_fencing.get(index.by_token.get(token)?),
        }
    }

    /// The time at which the next grant is over by itself.
    #[inline]
    pub(super) fn next_expiry(&self) -> Option<LocalTime> {
        match self {
            Self::Few(list) => list.iter().filter_map(|holder| holder.expiry).min(),
            Self::Many(index) => index.by_expiry.first().map(|(expiry, _)| *expiry),
        }
    }

    /// Adds the newest grant.
    #[inline]
    pub(super) fn push(&mut self, holder: Holder) {
        match self {
            Self::Few(list) if list.len() < FEW => list.push(holder),
            _ => self.push_many(holder),
        }
    }

    #[cold]
    fn push_many(&mut self, holder: Holder) {
        match self {
            Self::Few(list) => {
                let mut index = Box::<Index>::default();
                std::mem::take(list).into_iter().for_each(|holder| index.insert(holder));
                index.insert(holder);
                *self = Self::Many(index);
            }
            Self::Many(index) => index.insert(holder),
        }
    }

    /// Changes a grant, its expiry included; `None`: there is none with this token.
    pub(super) fn change<R>(
        &mut self,
        token: &Token,
        change: impl FnOnce(&mut Holder) -> R,
    ) -> Option<R> {
        match self {
            Self::Few(list) => list.iter_mut().find(|holder| holder.token == *token).map(change),
            Self::Many(index) => index.change(token, change),
        }
    }

    /// Ends a grant and says what it weighed; `None`: there is none with this token.
    #[inline]
    pub(super) fn remove(&mut self, token: &Token) -> Option<u32> {
        match self {
            Self::Few(list) => {
                let at = list.iter().position(|holder| holder.token == *token)?;
                Some(remove_at(list, at))
            }
            Self::Many(index) => {
                let fencing = *index.by_token.get(token)?;
                let weight = index.remove(fencing);
                self.shrink();
                weight
            }
        }
    }

    /// Ends one grant whose expiry has come and says what it weighed: overdue is gone, whatever
    /// timer fired (rule T3).
    pub(super) fn pop_overdue(&mut self, now: LocalTime) -> Option<u32> {
        match self {
            Self::Few(list) => {
                let overdue = |holder: &Holder| holder.expiry.is_some_and(|expiry| expiry <= now);
                let at = list.iter().position(overdue)?;
                Some(remove_at(list, at))
            }
            Self::Many(index) => {
                let (expiry, fencing) = *index.by_expiry.first()?;
                if expiry > now {
                    return None;
                }
                let weight = index.remove(fencing);
                self.shrink();
                weight
            }
        }
    }

    /// Back to a list, at half of its length so that a lock at the limit does not go to and fro.
    fn shrink(&mut self) {
        if let Self::Many(index) = self
            && index.by_fencing.len() <= FEW / 2
        {
            let mut list = Vec::with_capacity(FEW);
            list.extend(std::mem::take(&mut index.by_fencing).into_values());
            *self = Self::Few(list);
        }
    }
}

impl Index {
    fn insert(&mut self, holder: Holder) {
        let fencing = holder.fencing;
        if let Some(expiry) = holder.expiry {
            self.by_expiry.insert((expiry, fencing));
        }
        self.by_token.insert(holder.token.clone(), fencing);
        let before = self.by_fencing.insert(fencing, holder);
        assert!(before.is_none(), "a fencing token is given once (rule L8)");
    }

    fn change<R>(&mut self, token: &Token, change: impl FnOnce(&mut Holder) -> R) -> Option<R> {
        let fencing = *self.by_token.get(token)?;
        let holder = self.by_fencing.get_mut(&fencing)?;
        let before = holder.expiry;
        let result = change(holder);
        let after = holder.expiry;
        if before != after {
            if let Some(expiry) = before {
                self.by_expiry.remove(&(expiry, fencing));
            }
            if let Some(expiry) = after {
                self.by_expiry.insert((expiry, fencing));
            }
        }
        Some(result)
    }

    fn remove(&mut self, fencing: FencingToken) -> Option<u32> {
        let holder = self.by_fencing.remove(&fencing)?;
        self.by_token.remove(&holder.token);
        if let Some(expiry) = holder.expiry {
            self.by_expiry.remove(&(expiry, fencing));
        }
        Some(holder.weight)
    }
}

/// Drops an entry of a list that stays in the order of its grants. The last one, which is the only
/// one of a mutex, is dropped where it is.
#[inline]
fn remove_at(list: &mut Vec<Holder>, at: usize) -> u32 {
    let weight = list[at].weight;
    if at + 1 == list.len() {
        list.truncate(at);
    } else {
        list.remove(at);
    }
    weight
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn holder(n: u64, expiry: Option<u64>) -> Holder {
        Holder {
            token: Token::new(format!("t{n}")).unwrap(),
            attempt: AttemptId(n),
            client: ClientId(0),
            binding: Binding::Client,
            share: Share::ONE,
            weight: u32::try_from(n).unwrap() + 1,
            fencing: FencingToken(n),
            since: LocalTime(0),
            expiry: expiry.map(LocalTime),
            ttl: Some(Ttl::new(Duration::from_millis(1)).unwrap()),
            claimed: false,
            info: Arc::new(HolderInfo::from_parts("host", 1, None)),
        }
    }

    fn numbers(grants: &Grants) -> Vec<u64> {
        grants.iter().map(|holder| holder.attempt.0).collect()
    }

    /// Both forms, and the way from one to the other and back, answer alike.
    #[test]
    fn the_list_and_the_index_are_one_thing() {
        let mut grants = Grants::new();
        for n in 0..40 {
            grants.push(holder(n, (n % 3 != 0).then_some(100 - n)));
        }
        assert!(matches!(grants, Grants::Many(_)));
        assert_eq!(numbers(&grants), (0..40).collect::<Vec<_>>());
        assert_eq!(grants.next_expiry(), Some(LocalTime(62)));

        let token = Token::new("t38").unwrap();
        grants.change(&token, |holder| holder.expiry = Some(LocalTime(500))).unwrap();
        assert_eq!(grants.next_expiry(), Some(LocalTime(63)));
        grants.change(&token, |holder| holder.expiry = None).unwrap();

        let mut overdue = Vec::new();
        while let Some(weight) = grants.pop_overdue(LocalTime(99)) {
            overdue.push(weight - 1);
        }
        overdue.sort_unstable();
        assert_eq!(overdue, (0..38).filter(|n| n % 3 != 0).collect::<Vec<u32>>());
        assert_eq!(grants.next_expiry(), None);

        for n in (0..40u32).step_by(3).filter(|n| *n != 12 && *n != 30) {
            assert_eq!(grants.remove(&Token::new(format!("t{n}")).unwrap()), Some(n + 1));
        }
        assert!(matches!(grants, Grants::Few(_)));
        assert_eq!(numbers(&grants), [12, 30, 38]);
        assert!(grants.remove(&Token::new("t0").unwrap()).is_none());
        assert!(grants.get(&token).is_some());
    }
}
