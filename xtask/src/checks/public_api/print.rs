//! Tokens as one line of Rust, spaced as rustfmt would.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// Two signs that are one.
const PAIRS: [&str; 5] = ["::", "->", "=>", "..", "||"];

/// Documentation is left out.
pub(super) fn line(tokens: TokenStream) -> String {
    let mut pieces = Vec::new();
    flatten(tokens, &mut pieces);
    let mut made = String::new();
    let mut before: Option<&str> = None;
    for piece in &pieces {
        if before.is_some_and(|before| !is_glued(before, piece)) {
            made.push(' ');
        }
        made.push_str(piece);
        before = Some(piece);
    }
    made.replace(",)", ")").replace(",>", ">").replace(", }", " }")
}

fn flatten(tokens: TokenStream, pieces: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if is_doc(&group) => drop(pieces.pop()),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                pieces.push(open.to_owned());
                flatten(group.stream(), pieces);
                pieces.push(close.to_owned());
            }
            TokenTree::Punct(sign) => {
                let sign = sign.as_char();
                match pieces.last_mut() {
                    Some(last) if PAIRS.contains(&&*format!("{last}{sign}")) => last.push(sign),
                    _ => pieces.push(sign.to_string()),
                }
            }
            token => pieces.push(token.to_string()),
        }
    }
}

/// What stands after the `#` of `#[doc = "text"]`.
fn is_doc(group: &Group) -> bool {
    let mut tokens = group.stream().into_iter().map(|token| token.to_string());
    group.delimiter() == Delimiter::Bracket
        && tokens.next().is_some_and(|word| word == "doc")
        && tokens.next().is_some_and(|sign| sign == "=")
}

fn is_glued(before: &str, piece: &str) -> bool {
    let is_word =
        before.ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == '"');
    let is_after_word = is_word && !["as", "for", "in", "dyn", "where"].contains(&before);
    match piece {
        "," | ";" | "." | ")" | "]" | ">" | ":" | "" => return true,
        "(" => {
            return is_after_word || matches!(before, ">" | "(" | "[" | "&" | "<" | "#" | "!" | "");
        }
        "::" => return is_word || before == ">",
        "<" | "!" => return is_word || matches!(before, "::" | "(" | "<" | "&" | "#"),
        "[" if before == "#" => return true,
        _ => {}
    }
    matches!(before, "(" | "[" | "<" | "&" | "::" | "." | "'" | "?" | "!" | "$" | "")
        || (before == "*" && matches!(piece, "const" | "mut"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_spaced_as_people_write_them() {
        for text in [
            "pub fn lock<'a, T: ?Sized + 'a>(&'a self, n: &mut [u8; 4]) -> Acquire<'a, T>",
            "pub async fn of(this: &Arc<Self>) -> Result<(), <T as Work>::Error> where T: Send",
            "#[derive(Clone, Debug)] pub struct Token(..)",
            "pub type Run = fn(&Bench) -> u8",
            "pub fn on(work: impl AsyncFnOnce(&Lease) -> u8, to: dyn Fn(u8), at: Option<&'static str>)",
        ] {
            assert_eq!(line(text.parse().expect("tokens")), text);
        }
    }
}
