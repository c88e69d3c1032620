//! Many requests to one server or to several, each until its answer.

use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll};

use leasehold_core::{Fault, LocalTime};
use redis::{Arg, RedisError, Value};

use super::{From, Once, PAUSE_MAX, PAUSE_MIN, Trip};
use crate::{
    client::Client,
    error::{self, Remedy},
    fleet::{Fleet, Node},
    script::Request,
    slots::slot_of,
    time::BackOff,
};

/// How many requests go out together: the server is not held up for long by as many.
const BATCH: usize = 128;

/// What became of requests that went to one server together.
struct Pass<'a, R> {
    trip: Trip<'a>,
    answers: Vec<(usize, Result<R, Fault>)>,
    /// Those that are to be sent again, and not necessarily there.
    open: Vec<usize>,
}

/// Sends many requests, and each until it is answered or the deadline has come. They are not one
/// step, and one that fails fails alone. Those to different servers travel side by side: one that
/// does not answer delays nobody but its own.
pub(crate) async fn send_all<R>(
    client: &Client,
    from: From,
    deadline: LocalTime,
    requests: &[Request<R>],
) -> Vec<Result<R, Fault>> {
    let mut answers: Vec<Option<Result<R, Fault>>> = requests.iter().map(|_| None).collect();
    let all: Vec<usize> = (0..requests.len()).collect();
    let mut settle = |pass: Vec<(usize, Result<R, Fault>)>| {
        for (at, answer) in pass {
            answers[at] = Some(answer);
        }
    };
    match &client.fleet {
        Fleet::One(node) => {
            let trip = Trip::on(client, from, Arc::clone(node), None, deadline);
            let mut pass = trip.pass(requests, all).await;
            while !pass.open.is_empty() {
                settle(pass.answers);
                pass = pass.trip.pass(requests, pass.open).await;
            }
            settle(pass.answers);
        }
        Fleet::Cluster(_) => {
            let mut passes = Vec::new();
            let back_off = BackOff::new(PAUSE_MIN, PAUSE_MAX);
            let mut open = Some((all, back_off, 0));
            loop {
                if let Some((open, back_off, redirections)) = open.take() {
                    for (node, open) in by_owner(client, requests, open) {
                        let mut trip = Trip::on(client, from, node, None, deadline);
                        (trip.back_off, trip.redirections) = (back_off, redirections);
                        passes.push(Box::pin(trip.pass(requests, open)));
                    }
                }
                if passes.is_empty() {
                    break;
                }
                let pass = first_of(&mut passes).await;
                settle(pass.answers);
                if !pass.open.is_empty() {
                    open = Some((pass.open, pass.trip.back_off, pass.trip.redirections));
                }
            }
        }
    }
    answers.into_iter().map(|answer| answer.expect("each is answered")).collect()
}

/// Which requests go to which server.
fn by_owner<R>(
    client: &Client,
    requests: &[Request<R>],
    open: Vec<usize>,
) -> Vec<(Arc<Node>, Vec<usize>)> {
    let mut groups: Vec<(Arc<Node>, Vec<usize>)> = Vec::new();
    for at in open {
        let node = client.node_of(Some(slot_of_request(&requests[at])));
        match groups.iter_mut().find(|(known, _)| known.id == node.id) {
            Some((_, group)) => group.push(at),
            None => groups.push((node, vec![at])),
        }
    }
    groups
}

fn slot_of_request<R>(request: &Request<R>) -> u16 {
    // EVALSHA, the digest, the number of keys, the first key.
    match request.by_digest().args_iter().nth(3) {
        Some(Arg::Simple(key)) => slot_of(key),
        _ => 0,
    }
}

/// Waits for whichever is ready first and takes it out.
async fn first_of<F: Future>(futures: &mut Vec<Pin<Box<F>>>) -> F::Output {
    poll_fn(|cx| {
        for at in 0..futures.len() {
            if let Poll::Ready(output) = futures[at].as_mut().poll(cx) {
                drop(futures.swap_remove(at));
                return Poll::Ready(output);
            }
        }
        Poll::Pending
    })
    .await
}

impl<'a> Trip<'a> {
    /// Sends requests to one server until each is answered, or has to be sent again after a pause.
    async fn pass<R>(mut self, requests: &[Request<R>], mut open: Vec<usize>) -> Pass<'a, R> {
        let (mut answers, mut late) = (Vec::new(), Vec::new());
        let (mut by_text, mut why) = (false, None);
        while !open.is_empty() && why.is_none() {
            let rest = open.split_off(open.len().min(BATCH));
            let sent = self.batch(requests, open, by_text, &mut answers).await;
            // The texts are sent once for each script that the server has forgotten.
            by_text = !sent.forgotten.is_empty() && !by_text;
            open = sent.forgotten;
            open.extend(rest);
            late.extend(sent.late);
            why = sent.why;
        }
        late.extend(open);
        if let Some(fault) = why
            && let Err(fault) = self.pause(fault).await
        {
            answers.extend(late.drain(..).map(|at| (at, Err(fault.clone()))));
        }
        Pass { trip: self, answers, open: late }
    }

    /// Sends some of the requests once.
    async fn batch<R>(
        &mut self,
        requests: &[Request<R>],
        batch: Vec<usize>,
        by_text: bool,
        answers: &mut Vec<(usize, Result<R, Fault>)>,
    ) -> Sent {
        let link = match self.link().await {
            Ok(link) => link,
            Err(fault) if fault.is_retryable() => return Sent::late(batch, fault),
            Err(fault) => {
                answers.extend(batch.into_iter().map(|at| (at, Err(fault.clone()))));
                return Sent::default();
            }
        };
        let mut pipeline = redis::pipe();
        for at in &batch {
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
                Once::Again(fault) => return Sent::late(batch, fault),
                Once::Answer(answer) => {
                    let fault = answer.err().unwrap_or_else(|| self.lost());
                    answers.extend(batch.into_iter().map(|at| (at, Err(fault.clone()))));
                    return Sent::default();
                }
            },
        };
        let mut sent = Sent::default();
        for (at, value) in batch.into_iter().zip(values) {
            let error: RedisError = match value {
                Value::ServerError(error) => error.into(),
                value => {
                    let answer = requests[at].read(value).map_err(|fault| self.named(fault));
                    answers.push((at, answer));
                    continue;
                }
            };
            if error::remedy(&error) == Remedy::SendScript && !by_text {
                sent.forgotten.push(at);
                continue;
            }
            let mut tried = self.failed(&link, &error);
            if let Some(target) = self.ask.take() {
                // It is on its way: this one is asked for where it goes to.
                let mut aside = Trip::on(self.client, self.from, target, None, self.deadline);
                tried = aside.once_asking(&requests[at]).await;
            }
            match tried {
                Once::Answer(answer) => answers.push((at, answer)),
                Once::Again(fault) => {
                    sent.late.push(at);
                    sent.why = Some(fault);
                }
            }
        }
        sent
    }

    /// Sends a request once to the server that its lock is on its way to.
    async fn once_asking<R>(&mut self, request: &Request<R>) -> Once<R> {
        self.ask = Some(Arc::clone(&self.node));
        let tried = self.once(request).await;
        self.ask = None;
        tried
    }
}

/// What became of requests that were sent once.
#[derive(Default)]
struct Sent {
    /// The server has forgotten their scripts.
    forgotten: Vec<usize>,
    /// To be sent again after a pause, and why.
    late: Vec<usize>,
    why: Option<Fault>,
}

impl Sent {
    fn late(batch: Vec<usize>, why: Fault) -> Self {
        Self { forgotten: Vec::new(), late: batch, why: Some(why) }
    }
}
