use leasehold::{Error, Mutex, exclusive};

struct Account {
    lock: Mutex<()>,
    paid: u32,
}

impl Account {
    #[exclusive(self.lock)]
    async fn pay(&mut self) -> Result<(), Error> {
        self.paid += 1;
        Ok(())
    }

    #[exclusive(self.lock)]
    async fn close(self) -> Result<u32, Error> {
        Ok(self.paid)
    }
}

fn main() {}
