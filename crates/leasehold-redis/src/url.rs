//! The parts of a Redis URL. No message repeats any of them: each may be, by mistake, a part of a
//! password.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

use leasehold_core::InvalidArgument;

/// More parameters than there are.
const PARAMETERS_MAX: usize = 32;

pub(crate) struct Parts {
    pub(crate) place: Place,
    pub(crate) tls: bool,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: Option<u32>,
    pub(crate) parameters: Vec<(String, String)>,
}

pub(crate) enum Place {
    Host { name: String, port: Option<u16> },
    Socket(PathBuf),
}

/// Cuts a URL into its parts and decodes them.
pub(crate) fn parse(url: &str) -> Result<Parts, InvalidArgument> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let (tls, socket) = match scheme {
        "redis" => (false, false),
        "rediss" => (true, false),
        "unix" | "redis+unix" => (false, true),
        _ => {
            return Err(refused(
                "a Redis store is named redis://HOST, rediss://HOST or unix:///PATH",
            ));
        }
    };
    if rest.contains('#') {
        return Err(refused("a Redis URL has no #; write %23 for one in a password"));
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let (username, password) = credentials(user.unwrap_or(""))?;
    let (place, database) =
        if socket { (socket_at(host, path)?, None) } else { server_at(host, path)? };
    let parameters = parameters(query)?;
    Ok(Parts { place, tls, username, password, database, parameters })
}

/// An empty user name is none, so that `:PASSWORD@` is a password alone.
fn credentials(user: &str) -> Result<(Option<String>, Option<String>), InvalidArgument> {
    if user.contains('@') {
        return Err(refused("write %40 for an @ in a user name or a password"));
    }
    let (name, password) = match user.split_once(':') {
        Some((name, password)) => (name, Some(decoded(password)?)),
        None => (user, None),
    };
    Ok((Some(decoded(name)?).filter(|name| !name.is_empty()), password))
}

fn server_at(host: &str, path: &str) -> Result<(Place, Option<u32>), InvalidArgument> {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            (address, rest.strip_prefix(':').or(rest.is_empty().then_some("")))
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, Some("")),
        },
    };
    let port = match port {
        Some("") => None,
        Some(digits) => Some(digits.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
            refused("the port must be a number; write %2F for a / and %3A for a : in a user name")
        })?),
        None => return Err(refused("an IPv6 address is written [ADDRESS] or [ADDRESS]:PORT")),
    };
    let name = decoded(name)?;
    if name.is_empty() {
        return Err(refused("a Redis URL needs a host: redis://HOST"));
    }
    let database = match path.strip_prefix('/').unwrap_or(path) {
        "" => None,
        number => Some(number.parse().map_err(|_| refused("the database must be a number"))?),
    };
    Ok((Place::Host { name, port }, database))
}

fn socket_at(host: &str, path: &str) -> Result<Place, InvalidArgument> {
    if path.len() < 2 {
        return Err(refused("a Unix socket needs an absolute path: unix:///PATH"));
    }
    if !host.is_empty() {
        return Err(refused("a Unix socket has no host: unix:///PATH"));
    }
    let bytes = percent_decoded(path)?;
    if bytes.contains(&0) {
        return Err(refused("a path has no zero bytes"));
    }
    Ok(Place::Socket(PathBuf::from(OsString::from_vec(bytes))))
}

fn parameters(query: &str) -> Result<Vec<(String, String)>, InvalidArgument> {
    let mut parameters = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        if parameters.len() == PARAMETERS_MAX {
            return Err(refused("a Redis URL takes no more than 32 parameters"));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        parameters.push((decoded(name)?, decoded(value)?));
    }
    Ok(parameters)
}

fn decoded(text: &str) -> Result<String, InvalidArgument> {
    String::from_utf8(percent_decoded(text)?).map_err(|_| refused("a Redis URL must be UTF-8"))
}

fn percent_decoded(text: &str) -> Result<Vec<u8>, InvalidArgument> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let pair = digit().zip(digit()).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        bytes.push(pair.ok_or_else(|| {
            refused("% must be followed by two hexadecimal digits; write %25 for %")
        })?);
    }
    Ok(bytes)
}

fn refused(why: &str) -> InvalidArgument {
    InvalidArgument::new(why)
}
