//! A case: one statement about every store.

use leasehold_core::Capabilities;

use crate::{Bench, Cannot};

/// One statement, the rule it proves, what a store must have for it, and how it is proven.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The rule's id, lower case, and the statement: `q3_release_hands_over_directly`.
    pub name: &'static str,
    /// The rule that it proves, and the acceptance line or field report that asked for it.
    pub rule: &'static str,
    /// The capability it needs.
    pub needs: Needs,
    /// Proves it, or panics; an error says why this store cannot be put into the situation.
    pub run: fn(&Bench) -> Result<(), Cannot>,
}

/// What a store must have, or must lack, for a case to make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: true of every store.
    Nothing,
    /// The death of a client is proven.
    Proof,
    /// The death of a client is not proven: the opposite of a case that needs the proof.
    NoProof,
    /// Other processes reach the store.
    Processes,
    /// No other process reaches the store: the opposite of the cases that need one.
    NoProcesses,
    /// Other processes reach the store and their death is proven.
    ProcessesAndProof,
    /// Every call is answered at once, by the clock of this process.
    Inline,
    /// An answer may come later: the opposite of a case that needs it at once.
    NotInline,
}

impl Needs {
    /// Whether a store with these capabilities has it.
    #[must_use]
    pub const fn met_by(self, store: Capabilities) -> bool {
        match self {
            Self::Nothing => true,
            Self::Proof => store.proves_death,
            Self::NoProof => !store.proves_death,
            Self::Processes => store.cross_process,
            Self::NoProcesses => !store.cross_process,
            Self::ProcessesAndProof => store.cross_process && store.proves_death,
            Self::Inline => store.inline,
            Self::NotInline => !store.inline,
        }
    }

    /// As the list of trials says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "any store",
            Self::Proof => "proven death",
            Self::NoProof => "no proof of death",
            Self::Processes => "several processes",
            Self::NoProcesses => "one process only",
            Self::ProcessesAndProof => "several processes and proven death",
            Self::Inline => "inline answers",
            Self::NotInline => "answers that may come later",
        }
    }
}

/// What a case function gives: nothing, or why the store cannot be broken in the way it needs.
pub(crate) trait Ending {
    fn outcome(self) -> Result<(), Cannot>;
}

impl Ending for () {
    fn outcome(self) -> Result<(), Cannot> {
        Ok(())
    }
}

impl Ending for Result<(), Cannot> {
    fn outcome(self) -> Self {
        self
    }
}

/// Lists the cases of a theme: `needs, "rule", function;`. The function's name is the case's.
macro_rules! theme {
    ($($needs:ident, $rule:literal, $name:ident;)+) => {
        pub(super) const CASES: &[$crate::Case] = &[$($crate::Case {
            name: stringify!($name),
            rule: $rule,
            needs: $crate::Needs::$needs,
            run: |bench| $crate::case::Ending::outcome($name(bench)),
        }),+];
    };
}
pub(crate) use theme;
