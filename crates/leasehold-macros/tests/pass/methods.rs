//! Methods of every kind, run for their results.

use std::{fmt, sync::Arc};

use leasehold::{Error, LeaseMutex, LeaseRwLock, Mutex, RwLock, exclusive, shared};

struct Account {
    lock: Mutex<()>,
    state: RwLock<Vec<u64>>,
    lease: LeaseMutex,
    reads: LeaseRwLock,
    name: String,
}

#[derive(Debug)]
enum Refused {
    Lock(Error),
    Funds(u64),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(error) => error.fmt(f),
            Self::Funds(missing) => write!(f, "{missing} are missing"),
        }
    }
}

impl std::error::Error for Refused {}

impl Account {
    fn new() -> Self {
        Self {
            lock: Mutex::new(()),
            state: RwLock::new(vec![1]),
            lease: LeaseMutex::new(),
            reads: LeaseRwLock::new(),
            name: "savings".into(),
        }
    }

    /// A lock that guards nothing, and an argument that is moved.
    #[exclusive(self.lock)]
    async fn greet(&self, mut greeting: String) -> Result<String, Error> {
        greeting.push_str(&self.name);
        Ok(greeting)
    }

    /// The guarded value, `?` and `return`.
    #[exclusive(self.state as st)]
    async fn withdraw(&self, amount: u64) -> Result<u64, Refused> {
        if amount == 0 {
            return Ok(st[0]);
        }
        let left = st[0].checked_sub(amount).ok_or(Refused::Funds(amount - st[0]))?;
        st[0] = left;
        Ok(left)
    }

    /// A read, generic, with an error of any kind.
    #[shared(self.state as st)]
    async fn find<T: PartialEq<u64> + Sync>(
        &self,
        what: &T,
    ) -> Result<Option<usize>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(st.iter().position(|n| *what == *n))
    }

    /// Lifetimes, in the arguments and in what is returned.
    #[shared(self.state)]
    async fn longer<'a>(&'a self, other: &'a str) -> Result<&'a str, Error> {
        Ok(if other.len() > self.name.len() { other } else { &self.name })
    }

    #[shared(self.state)]
    async fn name(&self) -> Result<&str, Error> {
        Ok(&self.name)
    }

    /// Leases are locks too, and the value is the lease.
    #[exclusive(self.lease as lease)]
    async fn fence(&self) -> Result<u64, Error> {
        Ok(lease.fencing_token().get())
    }

    #[shared(self.reads)]
    async fn read(&self) -> Result<bool, Error> {
        Ok(self.reads.is_read_locked().await?)
    }

    /// A pointer to `self`.
    #[exclusive(self.lock)]
    async fn through_arc(self: Arc<Self>, text: &str) -> Result<usize, Error> {
        Ok(self.name.len() + text.len())
    }

    /// Another lock than one of `self`, beside `&mut self`.
    #[exclusive(ALL)]
    async fn rename(&mut self, name: &str) -> Result<(), Error> {
        self.name = name.into();
        Ok(())
    }
}

static ALL: Mutex<u32> = Mutex::new(0);

/// A function, with attributes of its own.
#[exclusive(ALL as all)]
#[must_use]
pub async fn count<const N: usize>(of: [u32; N]) -> Result<u32, Error> {
    *all += of.iter().sum::<u32>();
    Ok(*all)
}

mod renamed {
    pub use leasehold as other;

    pub struct Place(pub other::Mutex<u8>);

    impl Place {
        #[other::exclusive(self.0 as n, crate = crate::renamed::other)]
        pub async fn next(&self) -> Result<u8, other::Error> {
            *n += 1;
            Ok(*n)
        }
    }
}

trait Greets {
    fn greets(&self) -> impl Future<Output = Result<String, Error>> + Send;
}

impl Greets for Account {
    #[exclusive(self.lock)]
    async fn greets(&self) -> Result<String, Error> {
        Ok(self.name.clone())
    }
}

fn is_send<F: Send>(future: F) -> F {
    future
}

fn main() {
    let mut account = Account::new();
    pollster::block_on(async {
        assert_eq!(account.greet("my ".into()).await.unwrap(), "my savings");
        assert_eq!(account.greets().await.unwrap(), "savings");
        assert_eq!(is_send(account.withdraw(0)).await.unwrap(), 1);
        assert!(matches!(account.withdraw(3).await, Err(Refused::Funds(2))));
        assert_eq!(account.withdraw(1).await.unwrap(), 0);
        assert_eq!(account.find(&0).await.unwrap(), Some(0));
        assert_eq!(account.longer("a long text").await.unwrap(), "a long text");
        assert_eq!(account.name().await.unwrap(), "savings");
        assert!(is_send(account.fence()).await.unwrap() > 0);
        assert!(is_send(account.read()).await.unwrap());
        account.rename("other").await.unwrap();
        assert_eq!(count([1, 2]).await.unwrap(), 3);
        assert_eq!(renamed::Place(leasehold::Mutex::new(1)).next().await.unwrap(), 2);
        assert_eq!(Arc::new(account).through_arc("12").await.unwrap(), 7);
    });
}
