//! What a URL says behind its `?`.

use std::time::Duration;

use leasehold_core::InvalidArgument;

use super::{RedisConfig, password::Password};
use crate::topology::Topology;

impl RedisConfig {
    pub(super) fn with_parameter(self, name: &str, value: String) -> Result<Self, InvalidArgument> {
        if name.starts_with("sentinel_") && !matches!(self.topology, Topology::Sentinel { .. }) {
            return Err(InvalidArgument::new(
                "the parameters that begin with sentinel_ belong to redis+sentinel://",
            ));
        }
        Ok(match name {
            "username" => self.username(value),
            "password" => self.password(value),
            "password_file" => self.password_file(value),
            "password_env" => Self { password: Password::Variable(value), ..self },
            "sentinel_username" => self.sentinel_username(value),
            "sentinel_password" => self.sentinel_password(value),
            "sentinel_password_file" => self.sentinel_password_file(value),
            "sentinel_password_env" => {
                Self { sentinel_password: Password::Variable(value), ..self }
            }
            "db" => match value.parse() {
                Ok(database) => self.database(database),
                Err(_) => return Err(InvalidArgument::new("db must be a number")),
            },
            "prefix" => self.prefix(value)?,
            "client_name" => self.client_name(value)?,
            "connect_timeout_ms" => self.connect_timeout(milliseconds(&value)?)?,
            "command_timeout_ms" => self.command_timeout(milliseconds(&value)?)?,
            "allow_eviction" => match value.as_str() {
                "true" => self.allow_eviction(true),
                "false" => self.allow_eviction(false),
                _ => return Err(InvalidArgument::new("allow_eviction must be true or false")),
            },
            "wait_replicas" => match value.parse() {
                Ok(count) => self.wait_replicas(count),
                Err(_) => return Err(InvalidArgument::new("wait_replicas must be a number")),
            },
            "wait_replicas_timeout_ms" => self.wait_replicas_timeout(milliseconds(&value)?)?,
            "restart_guard_ms" => self.restart_guard(milliseconds(&value)?)?,
            "ca_file" => self.ca_file(value),
            // The name is not repeated: it may be what stands behind a `?` in a password.
            _ => {
                return Err(InvalidArgument::new(
                    "a Redis URL takes the parameters username, password, password_file, \
                     password_env, sentinel_username, sentinel_password, \
                     sentinel_password_file, sentinel_password_env, db, prefix, client_name, \
                     connect_timeout_ms, command_timeout_ms, allow_eviction, wait_replicas, \
                     wait_replicas_timeout_ms, restart_guard_ms and ca_file, and no other; \
                     write %3F for a ? in a password",
                ));
            }
        })
    }
}

fn milliseconds(text: &str) -> Result<Duration, InvalidArgument> {
    let count = text.parse().map_err(|_| InvalidArgument::new("a timeout is a whole number"))?;
    Ok(Duration::from_millis(count))
}
