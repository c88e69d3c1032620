//! Numbers and records as the scripts read them: big-endian, by Lua's `struct` library.

use leasehold_core::{Binding, Fault, FaultKind, HolderInfo};

/// Packs what a script unpacks in one call.
#[derive(Debug, Default)]
pub(super) struct Packed(Vec<u8>);

impl Packed {
    pub(super) fn byte(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(super) fn number(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    /// A count or a time in microseconds, exact to 2^53; what is above is beyond all counting and
    /// stays above.
    #[allow(clippy::cast_precision_loss, reason = "exact to 2^53, and rounded up there")]
    pub(super) fn large(mut self, value: u64) -> Self {
        self.0.extend((value as f64).to_be_bytes());
        self
    }

    /// The same, or −1 for none.
    pub(super) fn large_or_none(self, value: Option<u64>) -> Self {
        match value {
            Some(value) => self.large(value),
            None => {
                let mut this = self;
                this.0.extend((-1.0_f64).to_be_bytes());
                this
            }
        }
    }

    pub(super) fn bytes(mut self, value: &[u8]) -> Self {
        self.0.extend(value);
        self
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Flags of a request and of the record that is made of it.
pub(super) mod flag {
    pub(in crate::script) const WAIT: u8 = 1;
    pub(in crate::script) const BY_TOKEN: u8 = 2;
    pub(in crate::script) const WHOLE: u8 = 4;
    pub(in crate::script) const REGISTERED: u8 = 8;
}

pub(super) const fn binding_flag(binding: Binding) -> u8 {
    match binding {
        Binding::Client => 0,
        Binding::Token => flag::BY_TOKEN,
    }
}

/// Who holds or waits, in one string that no script looks into: the process id, the length of the
/// host's name, the name, and the label if there is one.
pub(super) fn encode_info(info: &HolderInfo) -> Vec<u8> {
    let host = info.host().as_bytes();
    // A name longer than a byte counts is cut; the systems that there are have shorter ones.
    let host = &host[..host.len().min(usize::from(u8::MAX))];
    let mut bytes = Vec::with_capacity(5 + host.len() + info.label().map_or(0, str::len));
    bytes.extend(info.pid().to_be_bytes());
    bytes.push(u8::try_from(host.len()).unwrap_or(u8::MAX));
    bytes.extend(host);
    // A label is never empty.
    bytes.extend(info.label().unwrap_or_default().as_bytes());
    bytes
}

pub(super) fn decode_info(bytes: &[u8]) -> Result<HolderInfo, Fault> {
    let parts = || {
        let (pid, rest) = bytes.split_first_chunk::<4>()?;
        let (host_len, rest) = rest.split_first()?;
        let (host, label) = rest.split_at_checked(usize::from(*host_len))?;
        let host = String::from_utf8_lossy(host);
        let label = String::from_utf8_lossy(label);
        let label = (!label.is_empty()).then_some(&*label);
        Some(HolderInfo::from_parts(&host, u32::from_be_bytes(*pid), label))
    };
    parts().ok_or_else(|| Fault::new(FaultKind::Corrupt, "a record in the server is damaged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_is_read_as_it_was_written() {
        for (host, label) in [("h", None), ("", Some("x")), ("höst", Some("a lábel"))] {
            let info = HolderInfo::from_parts(host, 70_000, label);
            assert_eq!(decode_info(&encode_info(&info)).unwrap(), info);
        }
        let long = HolderInfo::from_parts(&"h".repeat(300), 1, Some("label"));
        assert_eq!(decode_info(&encode_info(&long)).unwrap().label(), Some("label"));
        for damaged in [&[][..], &[0, 0, 0, 1], &[0, 0, 0, 1, 9, b'h']] {
            assert!(decode_info(damaged).is_err());
        }
    }
}
