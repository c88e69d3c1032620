//! The steps of a random program. What a lock cannot do, such as an upgrade of a semaphore, is
//! left out when the step comes.

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A request that may wait: of that weight, or of that kind.
    Acquire {
        weight: u32,
        kind: u8,
    },
    /// One that may not.
    Try {
        weight: u32,
        kind: u8,
    },
    /// One with a timeout of zero.
    TryTimeout {
        weight: u32,
        kind: u8,
    },
    /// A holder drops its guard.
    Release {
        holder: usize,
    },
    /// A writer or an upgradable reader becomes a plain reader.
    Downgrade {
        holder: usize,
    },
    /// The upgradable reader asks to become the writer.
    Upgrade,
    /// The same, without waiting.
    TryUpgrade,
    /// A waiter, granted already or not, is dropped.
    Cancel {
        waiter: usize,
    },
    /// A waiter is polled, so that a grant is taken.
    Poll {
        waiter: usize,
    },
    /// Every waiter is polled.
    PollAll,
    /// New permits.
    Add {
        permits: u32,
    },
    /// A holder's permits are unmade.
    Forget {
        holder: usize,
    },
    /// Free permits are unmade.
    ForgetFree {
        permits: u32,
    },
    /// A holder gives away a part, or two holders become one.
    Split {
        holder: usize,
        permits: u32,
    },
    Merge {
        holder: usize,
    },
}

/// Small, quick and the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring programs, and the state is never 0.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 33) % u64::from(end)).expect("below a u32")
    }

    pub(crate) fn step(&mut self) -> Step {
        let any = |dice: &mut Self| dice.below(1000) as usize;
        match self.below(181) {
            0..50 => Step::Acquire { weight: self.weight(), kind: self.kind() },
            50..60 => Step::Try { weight: self.weight(), kind: self.kind() },
            60..65 => Step::TryTimeout { weight: self.weight(), kind: self.kind() },
            65..100 => Step::Release { holder: any(self) },
            100..108 => Step::Downgrade { holder: any(self) },
            108..116 => Step::Upgrade,
            116..119 => Step::TryUpgrade,
            119..139 => Step::Cancel { waiter: any(self) },
            139..159 => Step::Poll { waiter: any(self) },
            159..169 => Step::PollAll,
            169..171 => Step::Add { permits: self.below(4) },
            171..173 => Step::Forget { holder: any(self) },
            173..175 => Step::ForgetFree { permits: self.below(4) },
            175..178 => Step::Split { holder: any(self), permits: self.below(4) },
            _ => Step::Merge { holder: any(self) },
        }
    }

    fn kind(&mut self) -> u8 {
        u8::try_from(self.below(8)).expect("below 8")
    }

    /// Mostly light, and reaching into what is refused: 0 and above the capacity.
    fn weight(&mut self) -> u32 {
        match self.below(8) {
            0..3 => 1,
            3..6 => 1 + self.below(3),
            _ => self.below(10),
        }
    }
}
