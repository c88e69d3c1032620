//! Several servers that share the keys among them.

use std::fmt::Write as _;

use crate::{Builder, Flavor, Missing, Reply, Server, wait_until};

/// How many slots there are.
pub const SLOTS: u16 = 16_384;
const MASTERS: usize = 3;

/// Three masters with a third of the slots each, and replicas of the first. Dropping it ends them.
///
/// A node is named by its number: 0, 1 and 2 begin as masters, those from 3 on as replicas of 0.
/// Slots that nobody has do not stop the others: `cluster-require-full-coverage` is off.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
    ids: Vec<String>,
}

impl Cluster {
    /// Starts one with this many replicas of the first master, and returns once all agree on it.
    ///
    /// # Errors
    /// The program is nowhere.
    ///
    /// # Panics
    /// It does not come about within a minute.
    pub fn start(flavor: Flavor, replicas: usize) -> Result<Self, Missing> {
        Self::start_with(flavor, replicas, |node| node)
    }

    /// The same with something special about every node.
    ///
    /// # Errors
    /// The program is nowhere.
    ///
    /// # Panics
    /// It does not come about within a minute.
    pub fn start_with(
        flavor: Flavor,
        replicas: usize,
        special: impl Fn(Builder) -> Builder,
    ) -> Result<Self, Missing> {
        let nodes = (0..MASTERS + replicas)
            .map(|_| special(node(flavor)).start())
            .collect::<Result<Vec<_>, _>>()?;
        let ids = nodes.iter().map(|node| node.command(&["CLUSTER", "MYID"]).text()).collect();
        let cluster = Self { nodes, ids };
        cluster.share_slots();
        cluster.meet();
        for replica in MASTERS..MASTERS + replicas {
            cluster.expect_ok(replica, &["CLUSTER", "REPLICATE", &cluster.ids[0]]);
        }
        cluster.wait_until_whole();
        Ok(cluster)
    }

    /// Where it is: its masters at the start.
    #[must_use]
    pub fn url(&self) -> String {
        let mut url = String::from("redis+cluster://");
        for (number, node) in self.nodes[..MASTERS].iter().enumerate() {
            let _ = write!(url, "{}{}", if number == 0 { "" } else { "," }, node.address());
        }
        url
    }

    /// One of its servers.
    #[must_use]
    pub fn node(&self, number: usize) -> &Server {
        &self.nodes[number]
    }

    /// All of its servers.
    #[must_use]
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The slot of a key.
    ///
    /// # Panics
    /// No node answers.
    #[must_use]
    pub fn slot(&self, key: &str) -> u16 {
        let slot = self.alive().command(&["CLUSTER", "KEYSLOT", key]).int();
        u16::try_from(slot).expect("a slot")
    }

    /// Who has a slot, as the first node that answers has it.
    ///
    /// # Panics
    /// Nobody has.
    #[must_use]
    pub fn owner(&self, slot: u16) -> usize {
        let slots = self.alive().command(&["CLUSTER", "SLOTS"]);
        let range = slots.items().iter().find(|range| {
            let bounds = &range.items()[..2];
            (bounds[0].int()..=bounds[1].int()).contains(&i64::from(slot))
        });
        let range = range.unwrap_or_else(|| panic!("nobody has slot {slot}"));
        let id = range.items()[2].items()[2].text();
        self.ids.iter().position(|known| *known == id).expect("a node of this cluster")
    }

    /// Whether a node is a master now, as it says itself.
    #[must_use]
    pub fn is_master(&self, number: usize) -> bool {
        let role = self.nodes[number].try_command(&["ROLE"]);
        role.is_ok_and(|role| role.items().first().is_some_and(|role| role.text() == "master"))
    }

    /// Lets a slot be on its way to another node: keys that are still there are served here, others
    /// are asked for there.
    ///
    /// # Panics
    /// A node refuses.
    pub fn begin_move(&self, slot: u16, to: usize) {
        let (from, slot) = (self.owner(slot), slot.to_string());
        self.expect_ok(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.ids[from]]);
        self.expect_ok(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.ids[to]]);
    }

    /// Moves the keys of a slot that is on its way. Says how many.
    ///
    /// # Panics
    /// A node refuses.
    pub fn move_keys(&self, slot: u16, to: usize) -> usize {
        let (from, slot) = (self.owner(slot), slot.to_string());
        let found = self.nodes[from].command(&["CLUSTER", "GETKEYSINSLOT", &slot, "100000"]);
        let keys: Vec<_> = found.items().iter().map(Reply::text).collect();
        if !keys.is_empty() {
            let port = self.nodes[to].port().to_string();
            let mut command = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "10000", "KEYS"];
            command.extend(keys.iter().map(String::as_str));
            self.expect_ok(from, &command);
        }
        keys.len()
    }

    /// Ends the way of a slot whose keys have moved: everybody knows where it is.
    ///
    /// # Panics
    /// A node refuses.
    pub fn end_move(&self, slot: u16, to: usize) {
        let from = self.owner(slot);
        let others = (0..self.nodes.len()).filter(|node| ![to, from].contains(node));
        // The new one first: until then, the old one would send everybody to nowhere.
        for node in [to, from].into_iter().chain(others) {
            if self.is_master(node) {
                let slot = slot.to_string();
                self.expect_ok(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &self.ids[to]]);
            }
        }
    }

    /// Moves a slot in one go.
    ///
    /// # Panics
    /// A node refuses.
    pub fn move_slot(&self, slot: u16, to: usize) {
        self.begin_move(slot, to);
        self.move_keys(slot, to);
        self.end_move(slot, to);
    }

    /// Has a replica take its master's place in good order, and returns once it has.
    ///
    /// # Panics
    /// It does not.
    pub fn hand_over_to(&self, replica: usize) {
        // A master does not listen to one that it does not know as its replica yet, and who asks is
        // told nothing of that.
        wait_until("the replica and its master know each other", || {
            self.nodes.iter().zip(&self.ids).any(|(master, id)| {
                let as_replica = format!("slave {id} ");
                let known = |line: Option<String>, as_what: &str| {
                    line.is_some_and(|line| line.contains(as_what) && line.contains(" connected"))
                };
                known(line_about(master, &self.ids[replica]), &as_replica)
                    && known(line_about(&self.nodes[replica], id), "master ")
            })
        });
        self.expect_ok(replica, &["CLUSTER", "FAILOVER"]);
        self.wait_until_master(replica);
    }

    /// Returns once a node is a master and the others know.
    ///
    /// # Panics
    /// It is none within a minute.
    pub fn wait_until_master(&self, number: usize) {
        wait_until("the node is a master and the others know", || {
            self.is_master(number)
                && self.nodes.iter().filter(|node| node.try_command(&["PING"]).is_ok()).all(
                    |node| {
                        line_about(node, &self.ids[number])
                            .is_some_and(|line| line.contains("master "))
                    },
                )
        });
    }

    /// Returns once every running node says that all is well, and every replica has what its master
    /// has.
    ///
    /// # Panics
    /// It is not so within a minute.
    pub fn wait_until_whole(&self) {
        wait_until("the cluster is whole", || {
            self.nodes.iter().all(|node| {
                let Ok(info) = node.try_command(&["CLUSTER", "INFO"]) else { return true };
                let role = node.info("replication", "role");
                let link = node.info("replication", "master_link_status");
                info.text().contains("cluster_state:ok")
                    && (role.as_deref() == Some("master") || link.as_deref() == Some("up"))
            })
        });
    }

    fn share_slots(&self) {
        for (number, node) in self.nodes.iter().enumerate() {
            let epoch = (number + 1).to_string();
            self.expect_ok(number, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            if number >= MASTERS {
                continue;
            }
            let bound = |third: usize| usize::from(SLOTS) * third / MASTERS;
            let slots = bound(number)..bound(number + 1);
            if node.flavor() == Flavor::Redis62 {
                let slots: Vec<_> = slots.map(|slot| slot.to_string()).collect();
                let mut command = vec!["CLUSTER", "ADDSLOTS"];
                command.extend(slots.iter().map(String::as_str));
                self.expect_ok(number, &command);
            } else {
                let (first, last) = (slots.start.to_string(), (slots.end - 1).to_string());
                self.expect_ok(number, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
        }
    }

    fn meet(&self) {
        for node in &self.nodes[1..] {
            let port = node.port().to_string();
            self.expect_ok(0, &["CLUSTER", "MEET", "127.0.0.1", &port]);
        }
        wait_until("the nodes know one another", || {
            self.nodes.iter().all(|node| {
                let known = node.command(&["CLUSTER", "NODES"]).text();
                self.ids.iter().all(|id| known.contains(id.as_str()))
                    && !known.contains("handshake")
            })
        });
    }

    fn alive(&self) -> &Server {
        let answers = |node: &&Server| node.try_command(&["PING"]).is_ok();
        self.nodes.iter().find(answers).expect("a node that answers")
    }

    fn expect_ok(&self, node: usize, command: &[&str]) {
        let reply = self.nodes[node].command(command);
        assert!(!reply.is_error(), "node {node} refuses {:?}: {reply:?}", &command[..2]);
    }
}

/// What a node knows of one, if it answers.
fn line_about(node: &Server, id: &str) -> Option<String> {
    let known = node.try_command(&["CLUSTER", "NODES"]).ok()?.text();
    known.lines().find(|line| line.starts_with(id)).map(str::to_owned)
}

fn node(flavor: Flavor) -> Builder {
    [
        "cluster-enabled yes",
        "cluster-node-timeout 1000",
        "cluster-require-full-coverage no",
        "cluster-replica-validity-factor 0",
        "repl-diskless-sync yes",
        "repl-diskless-sync-delay 0",
    ]
    .into_iter()
    .fold(Server::builder(flavor), Builder::config)
}
