//! `leasehold top`: a live screen of locks, holders and waiters.

mod keys;
mod model;
mod screen;
mod view;

use std::io::{self, IsTerminal};

use rustix::process::{Signal, getpid, kill_process};
use tokio::time::{MissedTickBehavior, interval};

use self::{
    keys::{Key, Keys},
    model::{Model, Wish},
    screen::Screen,
};
use crate::{
    args::TopArgs,
    exit::{Exit, Failure},
    settings::Settings,
    signals::Signals,
    store::{Look, Place},
};

/// Shows the screen until somebody ends it, and leaves the terminal as it was.
pub(crate) async fn top(args: TopArgs, settings: &Settings) -> Result<Exit, Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let why = "top needs a terminal; `leasehold list` and `leasehold watch` do not";
        return Err(Failure::new(Exit::Usage, why));
    }
    let cannot_start =
        |error: io::Error| Failure::new(Exit::Unavailable, format!("cannot start: {error}"));
    let mut signals = Signals::listen().map_err(cannot_start)?;
    let place = Place::of(settings)?;
    let mut look = Look::at(&place).await?;
    // After what may fail and is to be read on the terminal as it is.
    let mut screen = Screen::enter().map_err(cannot_start)?;
    let mut keys = Keys::listen().map_err(cannot_start)?;
    let mut model = Model::new(place.as_str(), &args);
    let mut ticks = interval(args.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let wish = tokio::select! {
            biased;
            signal = signals.next() => match signal {
                // A terminal that was resized, or given back by the shell.
                Signal::WINCH => Wish::Draw,
                Signal::CONT => {
                    screen.enter_again().map_err(cannot_start)?;
                    Wish::Draw
                }
                signal => return Ok(Exit::Signalled(signal)),
            },
            key = keys.next() => match key {
                Some(key) => model.press(key),
                // The terminal is gone.
                None => Wish::End,
            },
            _ = ticks.tick(), if !model.is_paused() => Wish::Look,
        };
        match wish {
            Wish::End => return Ok(Exit::Success),
            Wish::Stop => {
                screen.leave();
                // This program stops in here, until its shell continues it.
                let _ = kill_process(getpid(), Signal::TSTP);
                screen.enter_again().map_err(cannot_start)?;
            }
            Wish::Look => {
                look.again(&place).await?;
                let states = look.survey(args.namespace.as_ref()).await;
                model.show(states.map_err(|failure| failure.to_string()));
            }
            Wish::Draw => {}
        }
        let (width, height) = screen.size();
        screen.draw(&view::lines(&mut model, width, height));
    }
}

impl Key {
    /// Ctrl-C and Ctrl-D end, as `q` does.
    fn is_end(self) -> bool {
        matches!(self, Self::Text('q') | Self::Control('c' | 'd'))
    }
}
