//! Fetches the servers that tests need; `cargo xtask test --install` does the same.

#![forbid(unsafe_code)]

fn main() -> Result<(), String> {
    test_servers::install()
}
