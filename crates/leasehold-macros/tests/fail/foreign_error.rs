use leasehold::{Mutex, exclusive};

struct Account {
    lock: Mutex<()>,
}

impl Account {
    #[exclusive(self.lock)]
    async fn pay(&self) -> Result<(), std::num::ParseIntError> {
        Ok(())
    }
}

fn main() {}
