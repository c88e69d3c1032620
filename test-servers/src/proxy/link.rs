//! One connection through the proxy: a thread that reads and one that writes, each way.

use std::{
    collections::VecDeque,
    io::{self, Read as _, Write as _},
    mem,
    net::{Shutdown, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use super::{Direction, Fate, Request, Shared};
use crate::resp;

/// How many pieces may be on their way; more wait at the sender, as on a real connection.
const ON_THE_WAY: usize = 100_000;
const CHUNK: usize = 64 * 1024;

/// Two connections that are one to the client.
pub(super) struct Link {
    number: u64,
    client: TcpStream,
    server: TcpStream,
    closed: AtomicBool,
    talk: Mutex<Talk>,
}

/// What requests mean for the replies.
#[derive(Default)]
struct Talk {
    /// What becomes of the replies that are still to come, in order.
    replies: VecDeque<Outcome>,
    /// Pushes can be told from replies.
    has_pushes: bool,
    /// Everything that comes may be a push.
    only_pushes: bool,
    /// A replica follows its master: what comes now is neither requests nor replies.
    follows: bool,
    /// What a connection of its own must say first to be like this one.
    set_up: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Outcome {
    Arrives,
    ArrivesLater(Duration),
    ClosesInstead,
    IsLost,
}

/// Bytes on their way, with the moment of their arrival.
type Way = SyncSender<(Instant, Vec<u8>)>;

impl Link {
    pub(super) fn new(number: u64, client: TcpStream, server: TcpStream) -> Self {
        let talk = Mutex::new(Talk::default());
        Self { number, client, server, closed: AtomicBool::new(false), talk }
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        // Whoever is closed already is as wanted.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn talk(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn start(self: &Arc<Self>, shared: &Arc<Shared>) {
        for way in [Direction::Requests, Direction::Replies] {
            let (send, receive) = sync_channel(ON_THE_WAY);
            let (link, shared) = (Arc::clone(self), Arc::clone(shared));
            let (writer, of_writer) = (Arc::clone(self), Arc::clone(&shared));
            thread::spawn(move || {
                // An error is the end of the connection, and so is the end of a side.
                let _ = match way {
                    Direction::Requests => link.read_requests(&shared, &send),
                    Direction::Replies => link.read_replies(&shared, &send),
                };
            });
            thread::spawn(move || {
                let _ = writer.write(&of_writer, way, &receive);
                writer.close();
                of_writer.state().links.remove(&writer.number);
                of_writer.changed.notify_all();
            });
        }
    }

    fn read_requests(&self, shared: &Arc<Shared>, way: &Way) -> io::Result<()> {
        let mut frames = Frames::new(&self.client);
        let mut due = Instant::now();
        while let Some(frame) = frames.next()? {
            let request = Request::of(&frame, self.number);
            let fate = shared.fate_of(&request);
            if fate == Fate::Lose {
                // Read on, so that the client sees an open connection that says nothing.
                while frames.next()?.is_some() {}
                return Ok(());
            }
            self.expect_reply(&request, &frame, fate);
            let own = if let Fate::Delay(own) = fate { own } else { Duration::ZERO };
            if let Fate::AgainAfter(later) = fate {
                self.send_copy(shared, &frame, later);
            }
            due = due.max(Instant::now() + shared.delay(Direction::Requests) + own);
            if way.send((due, frame)).is_err() {
                return Ok(());
            }
            if self.talk().follows {
                return pass_on(&mut frames, way);
            }
        }
        Ok(())
    }

    fn expect_reply(&self, request: &Request, frame: &[u8], fate: Fate) {
        let mut talk = self.talk();
        if request.sets_up() {
            talk.set_up.extend_from_slice(frame);
            talk.has_pushes |= request.switches_to_pushes();
        }
        talk.follows |= request.follows();
        if request.subscribes() {
            // Its answers are pushes, where there are any.
            talk.only_pushes |= !talk.has_pushes;
            return;
        }
        talk.replies.push_back(match fate {
            Fate::CutAfter => Outcome::ClosesInstead,
            Fate::LoseReply => Outcome::IsLost,
            Fate::DelayReply(later) => Outcome::ArrivesLater(later),
            _ => Outcome::Arrives,
        });
    }

    fn read_replies(&self, shared: &Shared, way: &Way) -> io::Result<()> {
        let mut frames = Frames::new(&self.server);
        let mut due = Instant::now();
        while let Some(frame) = frames.next()? {
            let mut talk = self.talk();
            let is_push = frame.first() == Some(&b'>') || talk.only_pushes;
            let outcome = if is_push { None } else { talk.replies.pop_front() };
            let follows = talk.follows && talk.replies.is_empty();
            drop(talk);
            let own = match outcome {
                Some(Outcome::ClosesInstead) => return Ok(()),
                Some(Outcome::IsLost) => {
                    while frames.next()?.is_some() {}
                    return Ok(());
                }
                Some(Outcome::ArrivesLater(later)) => later,
                Some(Outcome::Arrives) | None => Duration::ZERO,
            };
            due = due.max(Instant::now() + shared.delay(Direction::Replies) + own);
            if way.send((due, frame)).is_err() {
                return Ok(());
            }
            if follows {
                return pass_on(&mut frames, way);
            }
        }
        Ok(())
    }

    /// Writes what arrives, when it does, until there is no more.
    fn write(
        &self,
        shared: &Shared,
        way: Direction,
        pieces: &Receiver<(Instant, Vec<u8>)>,
    ) -> io::Result<()> {
        let mut to = match way {
            Direction::Requests => &self.server,
            Direction::Replies => &self.client,
        };
        for (due, piece) in pieces {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let mut state = shared.state();
            while state.paused[way as usize] && !self.is_closed() {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            if self.is_closed() {
                return Ok(());
            }
            to.write_all(&piece)?;
        }
        Ok(())
    }

    /// Has a thread of its own send the request again later.
    fn send_copy(&self, shared: &Arc<Shared>, frame: &[u8], later: Duration) {
        let shared = Arc::clone(shared);
        let set_up = self.talk().set_up.clone();
        let frame = frame.to_vec();
        thread::spawn(move || -> io::Result<()> {
            thread::sleep(later);
            let mut server = TcpStream::connect(shared.target)?;
            server.write_all(&set_up)?;
            server.write_all(&frame)?;
            let (sent, mut frames) = (count_frames(&set_up) + 1, Frames::new(&server));
            for _ in 0..sent {
                frames.next()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            }
            shared.state().copies += 1;
            Ok(())
        });
    }
}

impl Shared {
    fn delay(&self, way: Direction) -> Duration {
        self.state().delay[way as usize]
    }
}

/// Passes on what comes, whatever it is.
fn pass_on(frames: &mut Frames<'_>, way: &Way) -> io::Result<()> {
    loop {
        let piece = frames.piece()?;
        if piece.is_empty() || way.send((Instant::now(), piece)).is_err() {
            return Ok(());
        }
    }
}

fn count_frames(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some(end) = resp::frame_end(bytes) {
        (count, bytes) = (count + 1, &bytes[end..]);
    }
    count
}

/// The requests or replies of a stream.
struct Frames<'a> {
    stream: &'a TcpStream,
    bytes: Vec<u8>,
    /// Where in the bytes the next one begins.
    at: usize,
}

impl<'a> Frames<'a> {
    const fn new(stream: &'a TcpStream) -> Self {
        Self { stream, bytes: Vec::new(), at: 0 }
    }

    /// The next one; `None` at the end of the stream.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(len) = resp::frame_end(&self.bytes[self.at..]) {
                let frame = self.bytes[self.at..self.at + len].to_vec();
                self.at += len;
                return Ok(Some(frame));
            }
            if self.read_on()? == 0 {
                return Ok(None);
            }
        }
    }

    /// What is there, whatever it is; nothing at the end of the stream.
    fn piece(&mut self) -> io::Result<Vec<u8>> {
        if self.at == self.bytes.len() {
            self.read_on()?;
        }
        let piece = self.bytes.split_off(mem::take(&mut self.at));
        self.bytes.clear();
        Ok(piece)
    }

    /// How many bytes have come.
    fn read_on(&mut self) -> io::Result<usize> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let mut chunk = [0; CHUNK];
        let len = self.stream.read(&mut chunk)?;
        self.bytes.extend_from_slice(&chunk[..len]);
        Ok(len)
    }
}
