//! What is typed, as keys.

use std::{
    io::{self, Read as _},
    thread,
    time::Duration,
};

use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};

/// How long the rest of a key's bytes may be on their way, over a slow line too.
const REST: Duration = Duration::from_millis(50);

/// One key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Text(char),
    Control(char),
    Up,
    Down,
    Home,
    End,
    PageUp,
    PageDown,
    Enter,
    Backspace,
    Escape,
    /// One of no meaning here.
    Other,
}

/// The keyboard.
pub(super) struct Keys(UnboundedReceiver<Key>);

impl Keys {
    /// Begins to listen, on a thread that ends with the program. Bytes become keys in a task of its
    /// own, since what is awaited beside a key must not tear it apart.
    pub(super) fn listen() -> io::Result<Self> {
        let (tell, bytes) = unbounded_channel();
        thread::Builder::new().name("keys".into()).spawn(move || {
            let mut buffer = [0; 64];
            while let Ok(count @ 1..) = io::stdin().lock().read(&mut buffer) {
                if buffer[..count].iter().any(|byte| tell.send(*byte).is_err()) {
                    return;
                }
            }
        })?;
        let (press, keys) = unbounded_channel();
        let mut decoder = Decoder { bytes, ahead: None };
        tokio::spawn(async move {
            while let Some(key) = decoder.next().await {
                if press.send(key).is_err() {
                    return;
                }
            }
        });
        Ok(Self(keys))
    }

    /// The next key; `None`: the terminal is gone. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Option<Key> {
        self.0.recv().await
    }
}

/// Makes keys of bytes.
struct Decoder {
    bytes: UnboundedReceiver<u8>,
    /// A byte that was read too far.
    ahead: Option<u8>,
}

impl Decoder {
    async fn next(&mut self) -> Option<Key> {
        let byte = match self.ahead.take() {
            Some(byte) => byte,
            None => self.bytes.recv().await?,
        };
        Some(match byte {
            b'\r' | b'\n' => Key::Enter,
            0x7f | 0x08 => Key::Backspace,
            0x1b => self.escaped().await,
            0x00..=0x1f => Key::Control(char::from(byte | 0x60)),
            0x20..=0x7e => Key::Text(char::from(byte)),
            _ => self.beyond_ascii(byte).await,
        })
    }

    async fn rest(&mut self) -> Option<u8> {
        timeout(REST, self.bytes.recv()).await.ok().flatten()
    }

    /// Escape alone, or the beginning of another key.
    async fn escaped(&mut self) -> Key {
        match self.rest().await {
            None => return Key::Escape,
            Some(b'[' | b'O') => {}
            other => {
                self.ahead = other;
                return Key::Escape;
            }
        }
        let mut number = 0_u32;
        // As long as no key of a terminal is.
        for _ in 0..8 {
            match self.rest().await {
                Some(b'A') => return Key::Up,
                Some(b'B') => return Key::Down,
                Some(b'H') => return Key::Home,
                Some(b'F') => return Key::End,
                Some(digit @ b'0'..=b'9') => number = number * 10 + u32::from(digit - b'0'),
                Some(b';') => {}
                Some(b'~') => {
                    return match number {
                        1 | 7 => Key::Home,
                        4 | 8 => Key::End,
                        5 => Key::PageUp,
                        6 => Key::PageDown,
                        _ => Key::Other,
                    };
                }
                _ => return Key::Other,
            }
        }
        Key::Other
    }

    async fn beyond_ascii(&mut self, first: u8) -> Key {
        let length = match first {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => return Key::Other,
        };
        let mut bytes = vec![first];
        while bytes.len() < length {
            match self.rest().await {
                Some(byte) => bytes.push(byte),
                None => return Key::Other,
            }
        }
        let text = std::str::from_utf8(&bytes).ok();
        text.and_then(|text| text.chars().next()).map_or(Key::Other, Key::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keys_are_told_apart() {
        let (tell, bytes) = unbounded_channel();
        let mut keys = Decoder { bytes, ahead: None };
        let typed = "q\x1b[A\x1bOB\x1b[5~\x1b[1;5H\r\x7f\x03é\x1bx\x1b";
        typed.bytes().for_each(|byte| tell.send(byte).unwrap());
        for key in [
            Key::Text('q'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::Home,
            Key::Enter,
            Key::Backspace,
            Key::Control('c'),
            Key::Text('é'),
            Key::Escape,
            Key::Text('x'),
            Key::Escape,
        ] {
            assert_eq!(keys.next().await, Some(key));
        }
        drop(tell);
        assert_eq!(keys.next().await, None);
    }
}
