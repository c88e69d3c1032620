use leasehold::{Error, Mutex, exclusive, shared};

struct Account {
    lock: Mutex<u32>,
}

impl Account {
    #[exclusive(self.lock as a::b)]
    async fn pay(&self) -> Result<(), Error> {
        Ok(())
    }

    #[exclusive(self.lock, timeout = 5)]
    async fn wait(&self) -> Result<(), Error> {
        Ok(())
    }

    #[exclusive]
    async fn new() -> Result<(), Error> {
        Ok(())
    }

    #[exclusive(self.lock)]
    async fn opaque(&self) -> Result<impl Sized, Error> {
        Ok(())
    }

    #[shared(self.lock)]
    async fn read(&self) -> Result<(), Error> {
        Ok(())
    }
}

fn main() {}
