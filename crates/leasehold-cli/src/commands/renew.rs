//! `leasehold renew`: prolong the grant of a ticket.

use leasehold::Remaining;

use super::grant::on_grant;
use crate::{
    args::RenewArgs,
    exit::{Exit, Failure},
    settings::Settings,
};

/// Renews the grant once (rule L2), or sets its end (rule T4).
pub(crate) async fn renew(args: RenewArgs, settings: &Settings) -> Result<Exit, Failure> {
    on_grant(args.grant, settings, async |grant| {
        let Some(ttl) = args.ttl else { return Ok(grant.renew().await?) };
        // Nobody renews such a grant, so a TTL would be its end: under a `run` without --ttl the
        // lock would pass on while the command still runs.
        if grant.remaining().await? == Remaining::Never {
            let lock = grant.lock();
            let why = format!("{lock}: the grant has no TTL, it is held until it is given back");
            return Err(Failure::new(Exit::Usage, why));
        }
        Ok(grant.extend(ttl.get()).await?)
    })
    .await
}
