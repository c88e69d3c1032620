//! The servers' protocol, as much of it as a test needs.

use std::{
    fmt,
    io::{self, Read, Write},
};

/// A server's reply. The kinds that only newer versions of the protocol know are folded into these.
#[derive(Clone, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`.
    Status(String),
    /// `-ERR ...`.
    Error(String),
    /// A number.
    Int(i64),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// Nothing.
    Nil,
    /// Several replies.
    Array(Vec<Self>),
}

impl Reply {
    /// The text of a status, an error, a string or a number; empty for all else.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Status(text) | Self::Error(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Int(number) => number.to_string(),
            Self::Nil | Self::Array(_) => String::new(),
        }
    }

    /// The number that this is, or that its text is.
    ///
    /// # Panics
    /// It is none.
    #[must_use]
    pub fn int(&self) -> i64 {
        self.text().parse().unwrap_or_else(|_| panic!("{self:?} is no number"))
    }

    /// The replies inside; none if this is not several.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// Whether this is an error.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(text) => write!(f, "+{text}"),
            Self::Error(text) => write!(f, "-{text}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Bulk(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Nil => f.write_str("nil"),
            Self::Array(items) => f.debug_list().entries(items).finish(),
        }
    }
}

/// Sends one request and reads its reply.
pub(crate) fn call(mut stream: impl Read + Write, arguments: &[&str]) -> io::Result<Reply> {
    stream.write_all(&request(arguments))?;
    let (mut bytes, mut chunk) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let len = stream.read(&mut chunk)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&chunk[..len]);
        if let Some(end) = frame_end(&bytes) {
            return Ok(parse(&bytes[..end]).0);
        }
    }
}

/// A request in the form that servers take it.
pub(crate) fn request<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments.iter().map(AsRef::as_ref) {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Where the first request or reply of these bytes ends; `None` while it is not complete.
pub(crate) fn frame_end(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut left) = (0, 1_usize);
    while left > 0 {
        let (kind, line, next) = line(bytes, at)?;
        (at, left) = (next, left - 1);
        match kind {
            b'$' | b'!' | b'=' => {
                if let Some(len) = length(line) {
                    at += len + 2;
                }
            }
            b'*' | b'~' | b'>' => left += length(line).unwrap_or(0),
            b'%' => left += 2 * length(line).unwrap_or(0),
            // An attribute stands before the reply that it is about.
            b'|' => left += 2 * length(line).unwrap_or(0) + 1,
            _ => {}
        }
        if at > bytes.len() {
            return None;
        }
    }
    Some(at)
}

/// The strings of a complete request; none if it is anything else.
pub(crate) fn arguments(frame: &[u8]) -> Vec<Vec<u8>> {
    match parse(frame).0 {
        Reply::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Reply::Bulk(bytes) => bytes,
                other => other.text().into_bytes(),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The reply that these bytes begin with, and where it ends. They hold a complete frame.
pub(crate) fn parse(bytes: &[u8]) -> (Reply, usize) {
    let (kind, text, mut at) = line(bytes, 0).expect("a complete frame");
    let text = String::from_utf8_lossy(text).into_owned();
    let len = length(text.as_bytes());
    let reply = match (kind, len) {
        (b'+' | b',' | b'(' | b'#', _) => Reply::Status(text),
        (b'-', _) => Reply::Error(text),
        (b':', _) => text.parse().map_or(Reply::Nil, Reply::Int),
        (b'$' | b'=' | b'!', Some(len)) => {
            let start = at;
            at += len + 2;
            Reply::Bulk(bytes[start..start + len].to_vec())
        }
        (b'*' | b'~' | b'>' | b'%' | b'|', Some(len)) => {
            let count = if matches!(kind, b'%' | b'|') { 2 * len } else { len };
            let mut items = Vec::new();
            for _ in 0..count {
                let (item, end) = parse(&bytes[at..]);
                items.push(item);
                at += end;
            }
            Reply::Array(items)
        }
        _ => Reply::Nil,
    };
    (reply, at)
}

/// The kind and the rest of the line at this place, and where the next begins.
fn line(bytes: &[u8], at: usize) -> Option<(u8, &[u8], usize)> {
    let rest = bytes.get(at..)?;
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let (kind, text) = rest[..end].split_first()?;
    Some((*kind, text, at + end + 2))
}

/// A length; `None` if it says that there is nothing.
fn length(line: &[u8]) -> Option<usize> {
    str::from_utf8(line).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_ends_where_its_last_part_does_and_not_before() {
        let frames: [&[u8]; 9] = [
            b"+OK\r\n",
            b"$-1\r\n",
            b"$5\r\na\r\nbc\r\n",
            b"*0\r\n",
            b"*2\r\n*1\r\n:7\r\n$2\r\nab\r\n",
            b"%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n",
            b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n",
            b"|1\r\n+a\r\n+b\r\n:5\r\n",
            b"_\r\n",
        ];
        for frame in frames {
            let two = [frame, frame].concat();
            assert_eq!(frame_end(&two), Some(frame.len()), "{}", frame.escape_ascii());
            for end in 0..frame.len() {
                assert_eq!(frame_end(&frame[..end]), None, "{}", frame[..end].escape_ascii());
            }
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let bytes = request(&[b"EVALSHA".as_slice(), b"\r\n\0", b""]);
        assert_eq!(frame_end(&bytes), Some(bytes.len()));
        assert_eq!(arguments(&bytes), [b"EVALSHA".as_slice(), b"\r\n\0", b""]);
    }
}
