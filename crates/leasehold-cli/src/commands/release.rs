//! `leasehold release`: give the grant of a ticket back.

use super::grant::on_grant;
use crate::{
    args::ReleaseArgs,
    exit::{Exit, Failure},
    settings::Settings,
};

/// Releases the grant. One that is gone is told, not passed over (rule T6): a script that believed
/// to hold the lock wants to know.
pub(crate) async fn release(args: ReleaseArgs, settings: &Settings) -> Result<Exit, Failure> {
    on_grant(args.grant, settings, async |grant| Ok(grant.release().await?)).await
}
