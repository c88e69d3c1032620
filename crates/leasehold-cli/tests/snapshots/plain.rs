//! Output without what differs from run to run and from machine to machine.

use std::fmt::Write as _;

use crate::common::Store;

/// What a command has printed. Of `doctor` and `bench` no figure stays.
pub(crate) fn plain(store: &Store, text: &str, command: &str) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let directory = store.dir().display().to_string();
    let url = store.url();
    let server = url.split_once('?').map_or("no server", |(server, _)| server);
    let text = text.replace(server, "SERVER");
    let text = text.replace(&directory, "DIR").replace(&format!("on {host}"), "on HOST");
    let text = text.replace(&format!("\"{host}\""), "\"HOST\"");
    let mut made = String::new();
    let lines = text.lines().map(|line| {
        let line = after(line, "pid ", |c| c.is_ascii_digit(), "PID");
        let line = after(&line, "\"pid\": ", |c| c.is_ascii_digit(), "PID");
        let line = after(&line, "fencing token ", |c| c.is_ascii_digit(), "FENCE");
        let line = after(&line, "\"fencing_token\": ", |c| c.is_ascii_digit(), "FENCE");
        let line = after(&line, "_ms\": ", |c| c.is_ascii_digit(), "MS");
        let line = ["mutex", "semaphore", "rw-lock"].iter().fold(line, |line, kind| {
            after(&line, &format!("lh1/default/{kind}/n/"), |c| c.is_ascii_hexdigit(), "TOKEN")
        });
        let line = after(&line, "TTL left ", |c| c.is_ascii_alphanumeric() || c == ' ', "TIME");
        let line = after(&line, "held it for ", |c| c.is_ascii_alphanumeric() || c == ' ', "TIME");
        let line =
            after(&line, "rejected, after ", |c| c.is_ascii_alphanumeric() || c == ' ', "TIME");
        let line = after(&line, "has succeeded ", |c| c != ',', "TIME ago");
        let line =
            after(&line, "\"time\":\"", |c| c.is_ascii_digit() || "-T:.Z".contains(c), "NOW");
        let line = after(&line, " for ", |c| !matches!(c, ',' | ';' | '"'), "TIME");
        let line = after(&line, "\"after_ms\":", |c| c.is_ascii_digit(), "MS");
        let line = after(&line, "\"pid\":", |c| c.is_ascii_digit(), "PID");
        let line = after(&line, "\"fencing_token\":", |c| c.is_ascii_digit(), "FENCE");
        let gap = if line.contains("leasehold top") { "  " } else { "no such line" };
        let line = after(&line, gap, |c| c.is_ascii_digit() || "-T:Z".contains(c), "NOW");
        let line = beginning_with_time(&line);
        if matches!(command, "doctor" | "bench") {
            return without_figures(&line);
        }
        let (line, end) =
            line.split_once("^[[0m^[[K").map_or((&*line, ""), |(line, _)| (line, "^[[0m^[[K"));
        times_of_table(line) + end
    });
    for line in lines {
        let _ = writeln!(made, "{line}");
    }
    made
}

/// Replaces what of this kind follows a text, wherever that stands; nothing where nothing follows.
fn after(line: &str, before: &str, is_of_it: impl Fn(char) -> bool, word: &str) -> String {
    let mut made = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(before) {
        let (head, tail) = rest.split_at(at + before.len());
        made.push_str(head);
        let kept = tail.trim_start_matches(&is_of_it);
        let begins_with_digit = tail.starts_with(|c: char| c.is_ascii_digit());
        if kept.len() < tail.len() && (begins_with_digit || word == "TOKEN") {
            made.push_str(word);
            rest = kept;
        } else {
            rest = tail;
        }
    }
    made + rest
}

/// The last two columns of the table of `list` are times, of different widths.
fn times_of_table(line: &str) -> String {
    let is_row = ["mutex ", "semaphore ", "rw-lock "].iter().any(|kind| line.contains(kind))
        && line.contains(" on HOST");
    if line.contains("KIND  ") || is_row {
        let words: Vec<_> =
            line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let count = words.len();
        for word in words.iter_mut().skip(count.saturating_sub(2)) {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                *word = "TIME".to_owned();
            }
        }
        return words.join("  ");
    }
    line.to_owned()
}

/// A line of `watch` begins with the time.
fn beginning_with_time(line: &str) -> String {
    match line.split_once("Z ") {
        Some((time, rest)) if time.starts_with("20") => format!("NOW {rest}"),
        _ => line.to_owned(),
    }
}

/// Numbers with their units, the columns that they widen, and what is of this machine.
fn without_figures(line: &str) -> String {
    let mut line = line.replace("ahead of this", "behind this");
    if let Some(at) = line.find("this one, ") {
        let id = at + "this one, ".len();
        line.replace_range(id..id + "8-4-4-4-12".len() + 26, "BOOT");
    }
    if let Some(number) = line.find(" (0x") {
        let begins = line[..number].rfind([' ', '"']).map_or(0, |at| at + 1);
        let ends = line[number..].find(')').map_or(line.len(), |at| number + at + 1);
        line.replace_range(begins..ends, "TYPE");
    }
    let mut made = String::new();
    let mut rest = &*line;
    while let Some(at) = rest.find(|sign: char| sign.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let after =
            number.trim_start_matches(|sign: char| sign.is_ascii_digit() || ".e-".contains(sign));
        let unit = ["µs", "ms", "ns", "s"].iter().find(|unit| {
            let after = after.trim_start().strip_prefix(**unit);
            after.is_some_and(|after| !after.starts_with(char::is_alphanumeric))
        });
        made.push_str(before);
        if before.ends_with(char::is_alphanumeric) {
            // Part of a name, as in `p99`.
            let name = number.trim_start_matches(|sign: char| sign.is_ascii_digit());
            made.push_str(&number[..number.len() - name.len()]);
            rest = name;
            continue;
        }
        made.push_str("FIGURE");
        rest = unit.map_or(after, |unit| &after.trim_start()[unit.len()..]);
    }
    made.push_str(rest);
    let (indent, text) = made.split_at(made.len() - made.trim_start().len());
    let words: Vec<_> = text.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
    indent.to_owned() + &words.join("  ")
}
