//! What may be asked of a keyed lock, and what conflicts (rule K1).

/// Shared or alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read = 0,
    Write = 1,
}

/// Access to one key, or to the whole set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Ask {
    Read,
    Write,
    ReadAll,
    WriteAll,
}

impl Access {
    #[inline]
    pub(crate) const fn writes(self) -> bool {
        matches!(self, Self::Write)
    }

    /// K1, where the two meet on one key, or one of them asks for the whole set.
    pub(crate) const fn conflicts(self, other: Self) -> bool {
        self.writes() || other.writes()
    }
}

impl Ask {
    #[inline]
    pub(crate) const fn access(self) -> Access {
        match self {
            Self::Read | Self::ReadAll => Access::Read,
            Self::Write | Self::WriteAll => Access::Write,
        }
    }

    #[inline]
    pub(crate) const fn is_whole(self) -> bool {
        matches!(self, Self::ReadAll | Self::WriteAll)
    }
}
