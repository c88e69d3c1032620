use leasehold::{Error, Mutex, exclusive};

struct Account {
    lock: Mutex<()>,
}

impl Account {
    #[exclusive(self.lock)]
    fn pay(&self) -> Result<(), Error> {
        Ok(())
    }
}

fn main() {}
