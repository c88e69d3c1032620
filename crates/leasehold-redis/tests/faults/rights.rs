//! A user who may use no channel: waiting is by looking, and all else is as ever (field report 51).

use test_servers::{Flavor, Server};

use crate::{Test, connect, run, witness::contend};

pub(crate) const TESTS: &[Test] = &[("a_user_without_channels", a_user_without_channels)];

fn a_user_without_channels(flavor: Flavor) {
    let acl = "user app on >secret ~leasehold* resetchannels +@all\nuser default off";
    let server = Server::builder(flavor).acl_file(acl).start().expect("installed");
    run(async {
        let url = server.url_with("app", "secret");
        let managers = [connect(&url).await, connect(&url).await];
        contend(&managers, "orders", 1, 4).await;
        for locks in managers {
            locks.shutdown().await.expect("answers");
        }
    });
}
