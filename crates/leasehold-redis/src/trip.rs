//! One request until its answer: sent again with the same token and attempt for as long as that can
//! help and the caller waits (rule L7).

use std::{sync::Arc, time::Duration};

use leasehold_core::{Fault, FaultKind, LocalTime, Sleep};
use redis::{RedisError, Value};

use crate::{
    client::Client,
    error::{self, Remedy},
    lane::{Lane, NoLink, ended},
    link::Link,
    script::Request,
    time::{BackOff, before, until},
};

/// The pauses between two tries.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// How many requests go out together: the server is not held up for long by as many.
const BATCH: usize = 128;

/// Where a request travels, until when, and what became of it so far.
pub(crate) struct Trip<'a> {
    client: &'a Client,
    lane: Arc<Lane>,
    pub(crate) deadline: LocalTime,
    back_off: BackOff,
    /// Goes on when the client has ended: it is the end's own request.
    outlives: bool,
    /// How often it was sent.
    pub(crate) sends: u32,
    /// Whether a send that was not answered may have taken effect, or may yet do so.
    pub(crate) in_doubt: bool,
}

/// What one try came to.
pub(crate) enum Once<R> {
    /// The answer, which may be a refusal for good.
    Answer(Result<R, Fault>),
    /// Another try may help.
    Again(Fault),
}

impl<'a> Trip<'a> {
    /// From where this is called.
    pub(crate) fn from_here(client: &'a Client, deadline: LocalTime) -> Self {
        Self::on(client, client.lanes.here(), deadline, false)
    }

    /// Over the connection of the client's own thread, also at the client's end.
    pub(crate) fn own(client: &'a Client, deadline: LocalTime) -> Self {
        Self::on(client, Arc::clone(client.lanes.own()), deadline, true)
    }

    fn on(client: &'a Client, lane: Arc<Lane>, deadline: LocalTime, outlives: bool) -> Self {
        let back_off = BackOff::new(PAUSE_MIN, PAUSE_MAX);
        Self { client, lane, deadline, back_off, outlives, sends: 0, in_doubt: false }
    }

    /// Sends a request until it is answered or the deadline has come.
    pub(crate) async fn send<R>(&mut self, request: &Request<R>) -> Result<R, Fault> {
        loop {
            match self.once(request).await {
                Once::Answer(answer) => return answer,
                Once::Again(fault) => self.pause(fault).await?,
            }
        }
    }

    /// Waits until another try makes sense.
    ///
    /// # Errors
    /// `fault`, when there is no time for another try.
    pub(crate) async fn pause(&mut self, fault: Fault) -> Result<(), Fault> {
        if self.client.has_ended() && !self.outlives {
            return Err(ended());
        }
        let clock = &self.client.dial.clock;
        let next = clock.now().after(self.back_off.pause());
        if next >= self.deadline {
            return Err(fault);
        }
        until(clock, next).await;
        Ok(())
    }

    /// Sends a request once.
    pub(crate) async fn once<R>(&mut self, request: &Request<R>) -> Once<R> {
        let link = match self.link().await {
            Ok(link) => link,
            Err(fault) if fault.is_retryable() => return Once::Again(fault),
            Err(fault) => return Once::Answer(Err(fault)),
        };
        let mut answer = self.exchange(&link, request.by_digest()).await;
        if let Err(error) = &answer
            && error::remedy(error) == Remedy::SendScript
        {
            answer = self.exchange(&link, &request.by_text()).await;
        }
        match answer {
            Ok(value) => Once::Answer(request.read(value).map_err(|fault| self.named(fault))),
            Err(error) => self.failed(&link, &error),
        }
    }

    /// Sends many requests, and each until it is answered or the deadline has come. They are not one
    /// step, and one that fails fails alone.
    pub(crate) async fn send_all<R>(&mut self, requests: &[Request<R>]) -> Vec<Result<R, Fault>> {
        let mut answers: Vec<Option<Result<R, Fault>>> = requests.iter().map(|_| None).collect();
        let mut open: Vec<usize> = (0..requests.len()).collect();
        let mut by_text = false;
        while !open.is_empty() {
            let batch = &open[..open.len().min(BATCH)];
            let (again, forgotten) = self.batch(requests, batch, by_text, &mut answers).await;
            // The texts are sent once for each script that the server has forgotten.
            by_text = forgotten && !by_text;
            open.retain(|at| answers[*at].is_none());
            if let Some(fault) = again
                && let Err(fault) = self.pause(fault).await
            {
                for at in open.drain(..) {
                    answers[at] = Some(Err(fault.clone()));
                }
            }
        }
        answers.into_iter().map(|answer| answer.expect("each is answered")).collect()
    }

    /// Sends some of the requests once. Gives why some are to be sent again after a pause, and
    /// whether the server has forgotten a script.
    async fn batch<R>(
        &mut self,
        requests: &[Request<R>],
        batch: &[usize],
        by_text: bool,
        answers: &mut [Option<Result<R, Fault>>],
    ) -> (Option<Fault>, bool) {
        let link = match self.link().await {
            Ok(link) => link,
            Err(fault) if fault.is_retryable() => return (Some(fault), false),
            Err(fault) => {
                batch.iter().for_each(|at| answers[*at] = Some(Err(fault.clone())));
                return (None, false);
            }
        };
        let mut pipeline = redis::pipe();
        for at in batch {
            let request = &requests[*at];
            pipeline.add_command(if by_text {
                request.by_text()
            } else {
                request.by_digest().clone()
            });
        }
        self.sends += 1;
        let values = match link.ask_all(&pipeline).await {
            Ok(values) => values,
            Err(error) => match self.failed::<R>(&link, &error) {
                Once::Again(fault) => return (Some(fault), false),
                Once::Answer(answer) => {
                    let fault = answer.err().unwrap_or_else(|| self.lost());
                    batch.iter().for_each(|at| answers[*at] = Some(Err(fault.clone())));
                    return (None, false);
                }
            },
        };
        let (mut again, mut forgotten) = (None, false);
        for (at, value) in batch.iter().zip(values) {
            let answer = match value {
                Value::ServerError(error) => {
                    let error = error.into();
                    if error::remedy(&error) == Remedy::SendScript && !by_text {
                        forgotten = true;
                        continue;
                    }
                    match self.failed(&link, &error) {
                        Once::Answer(answer) => answer,
                        Once::Again(fault) => {
                            again = Some(fault);
                            continue;
                        }
                    }
                }
                value => requests[*at].read(value).map_err(|fault| self.named(fault)),
            };
            answers[*at] = Some(answer);
        }
        (again, forgotten)
    }

    /// A connection, within the deadline. A runtime that does not connect soon may be blocked by
    /// the caller itself: then it is the client's thread that sends.
    pub(crate) async fn link(&mut self) -> Result<Arc<Link>, Fault> {
        loop {
            if let Some(link) = self.lane.open_link() {
                return Ok(link);
            }
            let is_own = Arc::ptr_eq(&self.lane, self.client.lanes.own());
            let (now, soon) = (self.client.now(), self.client.dial.config.reply_limit());
            if !is_own && self.lane.connects_since().is_some_and(|since| since.after(soon) <= now) {
                // Somebody has waited for that already.
                self.lane = Arc::clone(self.client.lanes.own());
                continue;
            }
            let soon = now.after(soon);
            let limit = if is_own { self.deadline } else { self.deadline.min(soon) };
            let limit = Sleep::until(Arc::clone(&self.client.dial.clock), limit);
            match before(limit, self.lane.link()).await {
                Some(Ok(link)) => return Ok(link),
                Some(Err(NoLink::Fault(fault))) => return Err(fault),
                None | Some(Err(NoLink::Gone)) if !is_own && self.client.now() < self.deadline => {
                    self.lane = Arc::clone(self.client.lanes.own());
                }
                Some(Err(NoLink::Gone)) => return Err(ended()),
                None => return Err(self.silent()),
            }
        }
    }

    /// One request and its answer. The first is limited by the watch over the connection, which
    /// takes no timer; another try ends with the deadline at the latest.
    async fn exchange(&mut self, link: &Link, command: &redis::Cmd) -> Result<Value, RedisError> {
        self.sends += 1;
        let answer = if self.sends == 1 {
            link.ask(command).await
        } else {
            let limit = Sleep::until(Arc::clone(&self.client.dial.clock), self.deadline);
            match before(limit, link.ask(command)).await {
                Some(answer) => answer,
                None => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
            }
        };
        match answer? {
            Value::ServerError(error) => Err(error.into()),
            value => Ok(value),
        }
    }

    fn failed<R>(&mut self, link: &Link, error: &RedisError) -> Once<R> {
        let remedy = error::remedy(error);
        tracing::debug!(store = self.lane.site().place.as_str(), ?remedy, "a request failed");
        match remedy {
            Remedy::None | Remedy::SendScript => {
                Once::Answer(Err(error::fault(&self.lane.site().place, error)))
            }
            Remedy::Wait => Once::Again(error::fault(&self.lane.site().place, error)),
            Remedy::FindMaster => {
                link.cut();
                Once::Again(error::fault(&self.lane.site().place, error))
            }
            Remedy::Reconnect => {
                self.in_doubt = true;
                if link.is_over() {
                    // The runtime that drove it may be blocked: the client's thread is not.
                    self.lane = Arc::clone(self.client.lanes.own());
                    return Once::Again(self.lost());
                }
                // The deadline came first, or what was read made no sense.
                if error.kind() == redis::ErrorKind::Parse {
                    link.cut();
                }
                Once::Again(self.silent())
            }
        }
    }

    fn lost(&self) -> Fault {
        let message = format!("the connection to {} was lost", self.lane.site().place.as_str());
        Fault::new(FaultKind::Unavailable, message)
    }

    fn silent(&self) -> Fault {
        let message = format!("{} did not answer in time", self.lane.site().place.as_str());
        Fault::new(FaultKind::Unavailable, message)
    }

    /// A fault that names the server.
    fn named(&self, fault: Fault) -> Fault {
        Fault::new(fault.kind(), format!("{}: {fault}", self.lane.site().place.as_str()))
    }
}
