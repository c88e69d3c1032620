use leasehold::{Mutex, RwLock, exclusive, shared};

struct Account {
    lock: Mutex<()>,
    state: RwLock<u32>,
}

impl Account {
    #[exclusive(self.lock)]
    async fn pay(&self) {}

    #[shared(self.state as st)]
    async fn balance(&self) -> u32 {
        *st
    }
}

fn main() {}
