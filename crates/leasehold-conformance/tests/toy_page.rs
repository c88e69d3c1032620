//! The code that the page for backend authors shows is the code that the kit has tested.
#![forbid(unsafe_code)]

const PAGE: &str = include_str!("../../../docs/writing-a-backend.md");
const TOY: &str = include_str!("toy/toy.rs");
const MAIN: &str = include_str!("toy/main.rs");

#[test]
fn the_page_shows_the_toy_that_the_kit_tests() {
    let shown = rust_blocks(PAGE).join("\n");
    let tested = [TOY, MAIN].join("\n");
    for (number, (shown, tested)) in shown.lines().zip(tested.lines()).enumerate() {
        assert_eq!(shown, tested, "line {} of the page's code differs", number + 1);
    }
    assert_eq!(shown.lines().count(), tested.lines().count(), "one of the two is longer");
}

/// The text of every fenced block of Rust, in order.
fn rust_blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while lines.any(|line| line == "```rust") {
        let block = lines.by_ref().take_while(|line| *line != "```");
        blocks.push(block.map(|line| format!("{line}\n")).collect());
    }
    blocks
}
