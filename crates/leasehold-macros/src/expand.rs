//! From a method to the same one under a lock.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{ImplItemFn, Result, ReturnType, parse2, spanned::Spanned};

use crate::{
    args::Args,
    method::{self, Takes},
};

/// Which attribute it is.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Exclusive,
    Shared,
}

impl Kind {
    const fn attribute(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

/// The method, or why not. After an error it is there as it was written, so that nothing else is
/// reported.
pub(crate) fn expand(kind: Kind, args: TokenStream, item: TokenStream) -> TokenStream {
    let written = item.clone();
    try_expand(kind, args, item).unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#error #written)
    })
}

fn try_expand(kind: Kind, args: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let Args { lock, binding, leasehold } = parse2(args)?;
    let mut method: ImplItemFn = parse2(item)?;
    let uses_self =
        lock.as_ref().is_none_or(|lock| method::has_word(lock.to_token_stream(), "self"));
    let takes = method::check(kind.attribute(), &method, uses_self)?;
    let ReturnType::Type(_, output) = &method.sig.output else { unreachable!("checked just now") };
    let body = &method.block;
    // The type comes first, so that what the body returns is coerced to it as in any function.
    let body = quote!({
        if let ::core::option::Option::Some(typed) = ::core::option::Option::None::<#output> {
            return typed;
        }
        #[allow(unreachable_code, clippy::diverging_sub_expression, clippy::let_and_return)]
        let done: #output = #body;
        #[allow(unreachable_code)]
        done
    });
    // Arguments are moved along, so that they are dropped within the frame; a reference to `self`
    // is copied, a pointer to it cannot be moved while its lock is borrowed.
    let moves = (takes != Takes::Pointer).then(|| quote!(move));
    let run = format_ident!("run_{}", kind.attribute());
    let request = match &lock {
        // With the place of the attribute: that is where the lock is asked for.
        Some(lock) => {
            let value = binding.map_or_else(|| quote!(_), |name| quote!(#name));
            let run = format_ident!("{}", run, span = lock.span());
            let work = quote!(async #moves |#value| #body);
            quote_spanned!(lock.span()=> (#lock).#run(#work))
        }
        None => {
            let run = format_ident!("object_{}", run);
            quote!(#leasehold::__private::#run(&*self, async #moves || #body))
        }
    };
    let block = quote!({
        match #request.await {
            ::core::result::Result::Ok(done) => done,
            ::core::result::Result::Err(error) => #leasehold::__private::refused(error),
        }
    });
    method.block = parse2(block)?;
    Ok(method.into_token_stream())
}
