//! What the server and the network report, as the faults of the contract, and what to do about it.

use leasehold_core::{Fault, FaultKind};
use redis::{ErrorKind, RedisError, ServerErrorKind, Value, parse_redis_value};

/// What to do about a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The connection is of no use any more: send the request again on another one. It may have
    /// taken effect.
    Reconnect,
    /// Another server may have the role by now: send the request again on another connection. It
    /// has not taken effect.
    FindMaster,
    /// Another server of the cluster has the lock: send it there. It has not taken effect.
    Follow,
    /// Send it again in a moment. It has not taken effect.
    Wait,
    /// The server has forgotten the script: send its source. It has not taken effect.
    SendScript,
    /// None: the server has refused, and the request has not taken effect.
    None,
}

/// What to do about a failed request.
pub(crate) fn remedy(error: &RedisError) -> Remedy {
    let inner = of_script(error);
    let error = inner.as_ref().unwrap_or(error);
    match error.kind() {
        ErrorKind::Server(kind) => match kind {
            ServerErrorKind::NoScript => Remedy::SendScript,
            ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown => Remedy::FindMaster,
            ServerErrorKind::BusyLoading
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::TryAgain => Remedy::Wait,
            ServerErrorKind::Moved | ServerErrorKind::Ask => Remedy::Follow,
            _ => Remedy::None,
        },
        // `redis` has no name for these.
        ErrorKind::Extension => match error.code() {
            Some("BUSY" | "NOREPLICAS" | "UNBLOCKED" | "UNKILLABLE") => Remedy::Wait,
            _ => Remedy::None,
        },
        ErrorKind::Io | ErrorKind::Parse => Remedy::Reconnect,
        _ => Remedy::None,
    }
}

/// Whether the lock is only on its way to the server that is named.
pub(crate) fn is_ask(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::Ask)
}

/// The fault of a failed request to the server that `place` names.
pub(crate) fn fault(place: &str, error: &RedisError) -> Fault {
    let kind = fault_kind(of_script(error).as_ref().unwrap_or(error));
    if matches!(error.kind(), ErrorKind::Io) {
        return Fault::new(kind, format!("{place}: {error}"));
    }
    Fault::new(kind, format!("{place}: {}", told(error)))
}

/// The error of a command inside of a script: until 7.0 it comes as text within another error.
fn of_script(error: &RedisError) -> Option<RedisError> {
    let text = error.to_string();
    let (_, rest) = text.rsplit_once("@user_script: ")?;
    let (line, said) = rest.split_once(": ")?;
    line.parse::<u32>().ok()?;
    let said = said.trim_start_matches('-').lines().next()?;
    match parse_redis_value(format!("-{said}\r\n").as_bytes()).ok()? {
        Value::ServerError(error) => Some(error.into()),
        _ => None,
    }
}

fn fault_kind(error: &RedisError) -> FaultKind {
    match error.kind() {
        ErrorKind::AuthenticationFailed => FaultKind::Denied,
        ErrorKind::Server(kind) => match kind {
            ServerErrorKind::NoPerm => FaultKind::Denied,
            ServerErrorKind::ReadOnly
            | ServerErrorKind::MasterDown
            | ServerErrorKind::BusyLoading
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::TryAgain
            | ServerErrorKind::NoScript => FaultKind::Unavailable,
            ServerErrorKind::CrossSlot | ServerErrorKind::Moved | ServerErrorKind::Ask => {
                FaultKind::Unsupported
            }
            _ => FaultKind::Corrupt,
        },
        ErrorKind::Extension => match error.code() {
            Some("NOAUTH" | "WRONGPASS") => FaultKind::Denied,
            // A server that cannot write to its disk refuses writes as well.
            Some("OOM" | "MISCONF") => FaultKind::Full,
            Some("BUSY" | "NOREPLICAS" | "UNBLOCKED" | "UNKILLABLE") => FaultKind::Unavailable,
            Some("WRONGTYPE") => FaultKind::Corrupt,
            _ => FaultKind::Corrupt,
        },
        ErrorKind::RESP3NotSupported => FaultKind::Unsupported,
        ErrorKind::InvalidClientConfig => FaultKind::Denied,
        _ => FaultKind::Unavailable,
    }
}

/// What the server said, without what it repeats of the request: a proxy that does not know HELLO
/// answers with the password in it.
fn told(error: &RedisError) -> String {
    let text = error.to_string();
    match text.find("with args beginning") {
        Some(at) => text[..at].trim_end_matches([' ', ',']).to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use redis::{Value, make_extension_error, parse_redis_value};

    use super::*;

    fn said(line: &str) -> RedisError {
        match parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap() {
            Value::ServerError(error) => error.into(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_kind_of_refusal_has_its_remedy_and_its_fault() {
        use FaultKind::{Corrupt, Denied, Full, Unavailable};
        for (line, cure, kind) in [
            ("NOSCRIPT No matching script.", Remedy::SendScript, Unavailable),
            ("READONLY You can't write", Remedy::FindMaster, Unavailable),
            ("MASTERDOWN Link with MASTER is down", Remedy::FindMaster, Unavailable),
            ("MOVED 7 h:1", Remedy::Follow, FaultKind::Unsupported),
            ("ASK 7 h:1", Remedy::Follow, FaultKind::Unsupported),
            ("LOADING Redis is loading", Remedy::Wait, Unavailable),
            ("CLUSTERDOWN The cluster is down", Remedy::Wait, Unavailable),
            ("TRYAGAIN Multiple keys request", Remedy::Wait, Unavailable),
            ("BUSY Redis is busy running a script", Remedy::Wait, Unavailable),
            ("NOPERM this user has no permissions", Remedy::None, Denied),
            ("NOAUTH Authentication required.", Remedy::None, Denied),
            ("WRONGPASS invalid username-password pair", Remedy::None, Denied),
            ("OOM command not allowed", Remedy::None, Full),
            ("MISCONF Redis is configured to save", Remedy::None, Full),
            ("WRONGTYPE Operation against a key", Remedy::None, Corrupt),
            ("ERR something else", Remedy::None, Corrupt),
        ] {
            let error = said(line);
            assert_eq!(remedy(&error), cure, "{line}");
            assert_eq!(fault("redis://h", &error).kind(), kind, "{line}");
            assert_eq!(kind == Unavailable || kind == Full, fault("h", &error).is_retryable());

            // As 6.2 says it of a command inside of a script.
            let error = said(&format!(
                "ERR Error running script (call to f_5a6c): @user_script:92: @user_script: 92: -{line}"
            ));
            assert_eq!(remedy(&error), cure, "{line}");
            assert_eq!(fault("redis://h", &error).kind(), kind, "{line}");
        }
        let lost = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!(remedy(&lost), Remedy::Reconnect);
        assert!(fault("redis://h", &lost).is_retryable());
    }

    #[test]
    fn what_a_server_repeats_of_a_request_is_not_told() {
        let line = "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'hunter2'";
        for error in [said(line), make_extension_error("X".into(), Some(line.into()))] {
            let fault = fault("redis://h:1/0", &error);
            assert!(!format!("{fault} {fault:?}").contains("hunter2"));
            assert!(fault.to_string().contains("HELLO"), "{fault}");
        }
    }
}
