//! What a method has to be like.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Error, FnArg, ImplItemFn, Receiver, ReceiverKind, Result, ReturnType, Type};

/// How `self` comes to a method.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// `&self`, which can be copied.
    Reference,
    /// As an `Arc<Self>` or the like.
    Pointer,
    /// Not at all: a function with a lock of its own.
    Nothing,
}

/// Why an attribute cannot go on this method, if so, in the words of somebody who wants it there.
pub(crate) fn check(attribute: &str, method: &ImplItemFn, uses_self: bool) -> Result<Takes> {
    let signature = &method.sig;
    if signature.asyncness.is_none() {
        let message = format!(
            "`#[{attribute}]` goes on an `async fn`, as the lock is awaited; \
             in a thread, use the lock's blocking calls"
        );
        return Err(Error::new_spanned(signature.fn_token, message));
    }
    check_output(attribute, method)?;
    let receiver = signature.inputs.iter().find_map(|argument| match argument {
        FnArg::Receiver(receiver) => Some(receiver),
        FnArg::Typed(_) => None,
    });
    match receiver {
        None if uses_self => {
            let message = format!(
                "`#[{attribute}]` of `self` goes on a method with `&self`; \
                 a function names its lock: `#[{attribute}(LOCK)]`"
            );
            Err(Error::new_spanned(&signature.ident, message))
        }
        None => Ok(Takes::Nothing),
        Some(receiver) => check_receiver(attribute, receiver, uses_self),
    }
}

fn check_output(attribute: &str, method: &ImplItemFn) -> Result<()> {
    let ReturnType::Type(_, output) = &method.sig.output else {
        let message = format!(
            "a method under `#[{attribute}]` returns a `Result` whose error takes \
             `leasehold::Error` by `From`: the lock may be refused"
        );
        return Err(Error::new_spanned(&method.sig.ident, message));
    };
    if matches!(**output, Type::ImplTrait(_)) || has_word(output.to_token_stream(), "impl") {
        let message = format!("a method under `#[{attribute}]` names the type that it returns");
        return Err(Error::new_spanned(output, message));
    }
    Ok(())
}

fn check_receiver(attribute: &str, receiver: &Receiver, uses_self: bool) -> Result<Takes> {
    let takes = match &receiver.kind {
        ReceiverKind::Reference(_, _, None) => Ok(Takes::Reference),
        ReceiverKind::Reference(_, _, Some(_)) => Err(BESIDE_MUT),
        ReceiverKind::Typed(_, ty) => match &**ty {
            Type::Reference(reference) if reference.mutability.is_none() => Ok(Takes::Reference),
            Type::Reference(_) => Err(BESIDE_MUT),
            Type::Path(path) if path.path.is_ident("Self") => Err(BY_VALUE),
            _ => Ok(Takes::Pointer),
        },
        _ => Err(BY_VALUE),
    };
    match takes {
        Ok(takes) => Ok(takes),
        // A lock that is no part of `self` does not mind.
        Err(_) if !uses_self => Ok(Takes::Pointer),
        Err(why) => {
            let message = format!("{why}: under `#[{attribute}]` of `self`, take `&self`");
            Err(Error::new_spanned(receiver, message))
        }
    }
}

const BESIDE_MUT: &str = "`&mut self` keeps everybody out already, and its lock is of no use";
const BY_VALUE: &str = "`self` is moved into the method, and its lock along";

/// Whether these tokens have that word in them.
pub(crate) fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => has_word(group.stream(), word),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}
