//! The rules, written down without a thought for their cost.

/// Who makes a request. An upgrade is a request of its own.
pub(crate) type Id = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Plain,
    Upgradable,
    Upgrade,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) id: Id,
    pub(crate) weight: u32,
    pub(crate) upgradable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) id: Id,
    pub(crate) weight: u32,
    pub(crate) want: Want,
}

/// A lock as two lists, searched and shifted.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) capacity: u32,
    pub(crate) holders: Vec<Holder>,
    pub(crate) waiters: Vec<Waiter>,
}

impl Model {
    pub(crate) fn used(&self) -> u32 {
        self.holders.iter().map(|holder| holder.weight).sum()
    }

    pub(crate) fn upgradable(&self) -> Option<Holder> {
        self.holders.iter().copied().find(|holder| holder.upgradable)
    }

    pub(crate) fn upgrade_pending(&self) -> bool {
        self.waiters.iter().any(|waiter| waiter.want == Want::Upgrade)
    }

    pub(crate) fn fits(&self, waiter: Waiter) -> bool {
        // Written as a sum, and not by a free count: what would be held must not exceed what is.
        let slot = waiter.want != Want::Upgradable || self.upgradable().is_none();
        let room = waiter.weight == 0 || self.used() + waiter.weight <= self.capacity;
        slot && room
    }

    pub(crate) fn hold(&mut self, waiter: Waiter) {
        match waiter.want {
            Want::Upgrade => {
                let holder = self.holders.iter_mut().find(|holder| holder.upgradable).unwrap();
                holder.weight += waiter.weight;
                holder.upgradable = false;
            }
            want => self.holders.push(Holder {
                id: waiter.id,
                weight: waiter.weight,
                upgradable: want == Want::Upgradable,
            }),
        }
    }

    pub(crate) fn grant_on(&mut self) -> Vec<(Id, u32)> {
        let mut granted = Vec::new();
        while let Some(&head) = self.waiters.first().filter(|head| self.fits(**head)) {
            self.waiters.remove(0);
            self.hold(head);
            granted.push((head.id, head.weight));
        }
        granted
    }
}
