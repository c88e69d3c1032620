//! The live screen as lines of text.

use std::time::SystemTime;

use super::model::Model;
use crate::{args::TopSort, report};

const BOLD: &str = "\x1b[1m";
const REVERSE: &str = "\x1b[7m";
const PLAIN: &str = "\x1b[0m";

/// Lines above and below the locks.
const FRAME: usize = 5;

/// As many lines as fit.
pub(super) fn lines(model: &mut Model, width: usize, height: usize) -> Vec<String> {
    let mut lines = vec![title(model, width), status(model, width), String::new()];
    if model.detailed {
        let state = &model.locks[model.selected()];
        let text = report::details(state);
        lines.extend(text.lines().map(|line| cut(line, width)));
    } else {
        lines.extend(table(model, width, height));
    }
    lines.truncate(height.saturating_sub(1));
    while lines.len() + 1 < height {
        lines.push(String::new());
    }
    lines.push(footer(model, width));
    lines.truncate(height);
    lines
}

fn title(model: &Model, width: usize) -> String {
    let time = humantime::format_rfc3339_seconds(SystemTime::now());
    format!("{BOLD}{}{PLAIN}", cut(&format!("leasehold top  {}  {time}", model.store), width))
}

fn status(model: &Model, width: usize) -> String {
    if let Some(why) = &model.failure {
        return cut(&format!("the store does not answer: {why}"), width);
    }
    let holders: usize = model.locks.iter().map(|state| state.holders.len()).sum();
    let waiters: usize = model.locks.iter().map(|state| state.waiters.len()).sum();
    let count = model.locks.len();
    let order = match model.sort {
        TopSort::Name => "name",
        TopSort::Waiting => "waiting",
        TopSort::Held => "held",
        TopSort::Ttl => "ttl",
    };
    let reversed = if model.reversed { ", reversed" } else { "" };
    let paused = if model.is_paused() { "  PAUSED" } else { "" };
    let text = format!(
        "locks {count}  holders {holders}  waiters {waiters}  waits/s {:.1}  by {order}{reversed}{paused}",
        model.rate()
    );
    cut(&text, width)
}

/// The head, and the rows around the chosen one.
fn table(model: &mut Model, width: usize, height: usize) -> Vec<String> {
    if model.locks.is_empty() {
        let filtered = if model.filter.is_empty() { "" } else { " of that name" };
        return vec![cut(&format!("no lock{filtered} is in use"), width)];
    }
    let text = report::table(&model.locks, true);
    let mut rows = text.lines();
    let head = rows.next().unwrap_or_default();
    let rows: Vec<_> = rows.collect();
    let selected = model.selected();
    model.page = height.saturating_sub(FRAME).max(1);
    // The chosen row stays on the screen.
    model.offset = model.offset.min(selected).max((selected + 1).saturating_sub(model.page));
    let mut lines = vec![format!("{BOLD}{}{PLAIN}", cut(head, width))];
    for (place, row) in rows.iter().enumerate().skip(model.offset).take(model.page) {
        let row = cut(row, width);
        lines.push(if place == selected { format!("{REVERSE}{row:<width$}{PLAIN}") } else { row });
    }
    lines
}

fn footer(model: &Model, width: usize) -> String {
    let text = if model.filters {
        format!("filter: {}_  (Enter: keep, Esc: none)", model.filter.escape_debug())
    } else if model.detailed {
        "Esc back  ↑↓ other lock  space pause  q end".to_owned()
    } else {
        let filter = if model.filter.is_empty() {
            String::new()
        } else {
            format!("  filter: {}", model.filter.escape_debug())
        };
        format!("↑↓ select  Enter detail  s sort  r reverse  / filter  space pause  q end{filter}")
    };
    cut(&text, width)
}

/// No line is longer than the screen, which would make it two.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use clap::Parser;
    use leasehold::{LockManager, Namespace};

    use super::*;
    use crate::{
        args::{Cli, Command, TopArgs},
        commands::top::{keys::Key, model::Wish},
    };

    fn args() -> TopArgs {
        match Cli::try_parse_from(["leasehold", "top"]).unwrap().command {
            Command::Top(args) => args,
            other => panic!("{other:?}"),
        }
    }

    /// Three locks, of which `b` has two waiters.
    fn model() -> Model {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let states = runtime.block_on(async {
            let locks =
                LockManager::builder().namespace(Namespace::new("shop").unwrap()).in_memory();
            let mut leases = Vec::new();
            for name in ["a", "b", "c"] {
                leases.push(locks.mutex(name).unwrap().lock().ttl(None).await.unwrap());
            }
            let b = Arc::new(locks.mutex("b").unwrap());
            let waiters = [0, 1].map(|_| {
                let b = Arc::clone(&b);
                tokio::spawn(async move { b.lock().timeout(Duration::from_secs(60)).await })
            });
            let states = loop {
                let states = locks.survey().await.unwrap();
                if states[1].waiters.len() == 2 {
                    break states;
                }
                tokio::task::yield_now().await;
            };
            waiters.iter().for_each(tokio::task::JoinHandle::abort);
            drop(leases);
            states
        });
        let mut model = Model::new("sqlite:x", &args());
        model.show(Ok(states));
        model
    }

    fn shown(model: &mut Model, height: usize) -> String {
        lines(model, 100, height).join("\n")
    }

    #[test]
    fn every_lock_has_a_row_and_the_chosen_one_is_marked() {
        let mut model = model();
        let text = shown(&mut model, 12);
        assert!(text.contains("locks 3  holders 3  waiters 2"), "{text}");
        assert!(text.contains(&format!("{REVERSE}shop       mutex  a")), "{text}");
        assert_eq!(model.press(Key::Down), Wish::Draw);
        assert!(shown(&mut model, 12).contains(&format!("{REVERSE}shop       mutex  b")));
        assert_eq!(lines(&mut model, 100, 12).len(), 12);
    }

    #[test]
    fn the_chosen_one_stays_chosen_in_another_order_and_on_a_small_screen() {
        let mut model = model();
        model.press(Key::End);
        model.press(Key::Text('s'));
        let text = shown(&mut model, 6);
        assert!(
            text.contains("by waiting") && text.contains(&format!("{REVERSE}shop       mutex  c")),
            "{text}"
        );
        assert_eq!(model.locks[0].lock.name().as_str(), "b");
        model.press(Key::Text('r'));
        assert_eq!(model.locks[2].lock.name().as_str(), "b");
    }

    #[test]
    fn a_filter_is_typed_and_taken_back() {
        let mut model = model();
        for key in [Key::Text('/'), Key::Text('b'), Key::Enter] {
            assert_eq!(model.press(key), Wish::Draw);
        }
        assert_eq!(model.locks.len(), 1);
        assert!(shown(&mut model, 12).contains("filter: b"));
        model.press(Key::Text('/'));
        model.press(Key::Text('q'));
        assert!(shown(&mut model, 12).contains("no lock of that name is in use"));
        model.press(Key::Escape);
        assert_eq!(model.locks.len(), 3);
        assert_eq!(model.press(Key::Text('q')), Wish::End);
    }

    #[test]
    fn one_lock_is_shown_with_everybody_in_order() {
        let mut model = model();
        model.press(Key::Down);
        model.press(Key::Enter);
        let text = shown(&mut model, 12);
        assert!(text.contains("mutex \"b\" in namespace shop"), "{text}");
        assert!(text.contains("holder 1: ") && text.contains("waiter 2: "), "{text}");
        model.press(Key::Escape);
        assert!(shown(&mut model, 12).contains("KIND"));
    }

    #[test]
    fn no_line_is_longer_than_the_screen() {
        let mut model = model();
        for line in lines(&mut model, 20, 10) {
            let plain =
                [BOLD, REVERSE, PLAIN].iter().fold(line, |line, style| line.replace(style, ""));
            assert!(plain.chars().count() <= 20, "{plain}");
        }
    }
}
