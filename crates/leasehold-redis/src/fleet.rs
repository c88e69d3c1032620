//! The servers of a store, and which of them has a lock.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tokio::{runtime::Handle, sync::Notify};

use crate::{
    dial::Dial,
    lane::{Lane, Lanes},
    site::{Goal, Site},
    slots::{Range, SlotMap},
    topology::Endpoint,
};

/// One server that has locks, and the ways to it.
#[derive(Debug)]
pub(crate) struct Node {
    /// No other node of this client has the same.
    pub(crate) id: u64,
    pub(crate) lanes: Lanes,
    /// For what waits for replicas, where that is asked for: renewals must not stand behind it.
    patient: Option<Lanes>,
}

impl Node {
    /// A server that the client's thread, whose runtime is `home`, reaches over `own`.
    pub(crate) fn new(id: u64, home: &Handle, dial: &Arc<Dial>, own: Arc<Lane>) -> Arc<Self> {
        let patient = (dial.config.wait_replicas > 0).then(|| {
            let site = Arc::clone(own.site());
            let lane = Lane::new(home.clone(), Arc::clone(dial), site, None).patient();
            Lanes::new(Arc::new(lane))
        });
        Arc::new(Self { id, lanes: Lanes::new(own), patient })
    }

    /// The lanes for what waits for replicas.
    pub(crate) fn patient(&self) -> &Lanes {
        self.patient.as_ref().unwrap_or(&self.lanes)
    }

    fn requests(&self) -> (u64, u64) {
        let of_patient = self.patient.as_ref().map_or((0, 0), Lanes::requests);
        add(self.lanes.requests(), of_patient)
    }

    pub(crate) fn site(&self) -> &Arc<Site> {
        self.lanes.own().site()
    }
}

/// All servers of a store.
#[derive(Debug)]
pub(crate) enum Fleet {
    /// One has every lock; with sentinels, whichever is the master.
    One(Arc<Node>),
    Cluster(Cluster),
}

impl Fleet {
    pub(crate) const fn cluster(&self) -> Option<&Cluster> {
        match self {
            Self::One(_) => None,
            Self::Cluster(cluster) => Some(cluster),
        }
    }

    /// Every server that has locks.
    pub(crate) fn masters(&self) -> Vec<Arc<Node>> {
        match self {
            Self::One(node) => vec![Arc::clone(node)],
            Self::Cluster(cluster) => cluster.state().nodes.values().cloned().collect(),
        }
    }

    /// Requests that went out for callers in a runtime, and over the thread's connections.
    pub(crate) fn requests(&self) -> (u64, u64) {
        let of_nodes = self.masters().iter().map(|node| node.requests()).fold((0, 0), add);
        match self {
            Self::One(_) => of_nodes,
            Self::Cluster(cluster) => add(of_nodes, cluster.state().retired),
        }
    }
}

fn add(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0 + b.0, a.1 + b.1)
}

/// Servers that share the slots among them.
pub(crate) struct Cluster {
    /// The client's thread.
    home: Handle,
    dial: Arc<Dial>,
    state: RwLock<State>,
    next_id: AtomicU64,
    /// What is known of the slots may be wrong.
    pub(crate) doubted: Notify,
}

#[derive(Default)]
struct State {
    nodes: HashMap<Endpoint, Arc<Node>>,
    slots: SlotMap<Node>,
    ranges: Vec<Range>,
    /// Requests of nodes that are none any more.
    retired: (u64, u64),
}

impl Cluster {
    pub(crate) fn new(home: Handle, dial: Arc<Dial>) -> Self {
        let (state, next_id) = (RwLock::default(), AtomicU64::new(0));
        Self { home, dial, state, next_id, doubted: Notify::new() }
    }

    /// Who has a slot; when nobody is known to, somebody, who will know who has. `None`: nobody is
    /// known at all.
    pub(crate) fn owner(&self, slot: u16) -> Option<Arc<Node>> {
        let state = self.state();
        match state.slots.owner(slot) {
            Some(node) => Some(Arc::clone(node)),
            None => state.nodes.values().next().cloned(),
        }
    }

    /// A server that another one names.
    pub(crate) fn node(&self, endpoint: &Endpoint) -> Arc<Node> {
        if let Some(node) = self.state().nodes.get(endpoint) {
            return Arc::clone(node);
        }
        self.node_in(&mut self.state_mut(), endpoint)
    }

    /// A slot has another owner than was known. Where one has moved, others may have too.
    pub(crate) fn moved(&self, slot: u16, to: &Endpoint) {
        {
            let mut state = self.state_mut();
            let node = self.node_in(&mut state, to);
            state.slots.set(slot..=slot, &node);
        }
        self.doubted.notify_one();
    }

    /// Takes over what a node says. Servers that have no slots any more are forgotten, with their
    /// connections; slots that nobody is said to have stay where they were.
    pub(crate) fn learn(&self, ranges: Vec<Range>) {
        if ranges.is_empty() {
            return;
        }
        let mut state = self.state_mut();
        for range in &ranges {
            let node = self.node_in(&mut state, &range.master);
            state.slots.set(range.first..=range.last, &node);
        }
        let State { nodes, slots, retired, .. } = &mut *state;
        nodes.retain(|_, node| {
            let stays = slots.has(node);
            if !stays {
                *retired = add(*retired, node.requests());
            }
            stays
        });
        let masters = state.nodes.keys().cloned().collect();
        state.ranges = ranges;
        drop(state);
        self.dial.roster.set(masters);
    }

    /// Who has which slots, as a node said last.
    pub(crate) fn ranges(&self) -> Vec<Range> {
        self.state().ranges.clone()
    }

    /// Whether a server is one of the cluster's, master or replica, as far as is known.
    pub(crate) fn knows(&self, endpoint: &Endpoint) -> bool {
        self.state()
            .ranges
            .iter()
            .any(|range| range.master == *endpoint || range.replicas.contains(endpoint))
    }

    fn node_in(&self, state: &mut State, endpoint: &Endpoint) -> Arc<Node> {
        let node = state.nodes.entry(endpoint.clone()).or_insert_with(|| {
            let site = Site::new(Goal::Server(endpoint.clone()), &self.dial.config);
            let own = Lane::new(self.home.clone(), Arc::clone(&self.dial), Arc::new(site), None);
            let id = self.next_id.fetch_add(1, Relaxed);
            Node::new(id, &self.home, &self.dial, Arc::new(own))
        });
        Arc::clone(node)
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.state().nodes.keys().cloned().collect();
        f.debug_struct("Cluster").field("nodes", &nodes).finish_non_exhaustive()
    }
}
