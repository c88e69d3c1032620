//! The parts of a Redis URL. No message repeats any of them: each may be, by mistake, a part of a
//! password.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

use leasehold_core::InvalidArgument;

use crate::topology::{Endpoint, Topology};

/// More parameters than there are.
const PARAMETERS_MAX: usize = 32;
/// How many servers a URL names at most.
pub(crate) const HOSTS_MAX: usize = 64;
/// The longest name of a service in bytes.
const SERVICE_BYTES_MAX: usize = 255;
/// The port of a server, and that of a sentinel, where none is named.
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

pub(crate) struct Parts {
    pub(crate) topology: Topology,
    pub(crate) tls: bool,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: Option<u32>,
    pub(crate) parameters: Vec<(String, String)>,
}

#[derive(Clone, Copy)]
enum Form {
    One,
    Socket,
    Sentinel,
    Cluster,
}

/// Cuts a URL into its parts and decodes them.
pub(crate) fn parse(url: &str) -> Result<Parts, InvalidArgument> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let (tls, form) = match scheme {
        "redis" => (false, Form::One),
        "rediss" => (true, Form::One),
        "unix" | "redis+unix" => (false, Form::Socket),
        "redis+sentinel" => (false, Form::Sentinel),
        "rediss+sentinel" => (true, Form::Sentinel),
        "redis+cluster" => (false, Form::Cluster),
        "rediss+cluster" => (true, Form::Cluster),
        _ => {
            return Err(refused(
                "a Redis store is named redis://HOST, rediss://HOST, unix:///PATH, \
                 redis+sentinel://HOST,HOST/SERVICE or redis+cluster://HOST,HOST",
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
    let (topology, database) = match form {
        Form::One => (Topology::One(server_at(host, PORT)?), database_at(path)?),
        Form::Socket => (Topology::One(socket_at(host, path)?), None),
        Form::Sentinel => {
            let sentinels = servers_at(host, SENTINEL_PORT)?;
            let path = path.strip_prefix('/').unwrap_or(path);
            let (service, database) = match path.find('/') {
                Some(at) => path.split_at(at),
                None => (path, ""),
            };
            let service = checked_service(decoded(service)?)?;
            (Topology::Sentinel { sentinels, service }, database_at(database)?)
        }
        Form::Cluster => (Topology::Cluster { seeds: servers_at(host, PORT)? }, database_at(path)?),
    };
    let parameters = parameters(query)?;
    Ok(Parts { topology, tls, username, password, database, parameters })
}

/// The name that the sentinels have for a master and its replicas.
pub(crate) fn checked_service(service: String) -> Result<String, InvalidArgument> {
    let allowed = |character: char| !character.is_control() && !character.is_whitespace();
    if service.is_empty() || service.len() > SERVICE_BYTES_MAX || !service.chars().all(allowed) {
        return Err(refused(
            "sentinels need the name of a service, without spaces: redis+sentinel://HOST/SERVICE",
        ));
    }
    Ok(service)
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

/// Several servers, separated by commas.
fn servers_at(hosts: &str, default_port: u16) -> Result<Vec<Endpoint>, InvalidArgument> {
    let servers = hosts.split(',').take(HOSTS_MAX + 1).map(|host| server_at(host, default_port));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    if servers.len() > HOSTS_MAX {
        return Err(refused("a Redis URL takes no more than 64 hosts"));
    }
    Ok(servers)
}

fn server_at(host: &str, default_port: u16) -> Result<Endpoint, InvalidArgument> {
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
    Ok(Endpoint::Host { name, port: port.unwrap_or(default_port) })
}

fn database_at(path: &str) -> Result<Option<u32>, InvalidArgument> {
    match path.strip_prefix('/').unwrap_or(path) {
        "" => Ok(None),
        number => number.parse().map(Some).map_err(|_| refused("the database must be a number")),
    }
}

fn socket_at(host: &str, path: &str) -> Result<Endpoint, InvalidArgument> {
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
    Ok(Endpoint::Socket(PathBuf::from(OsString::from_vec(bytes))))
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
