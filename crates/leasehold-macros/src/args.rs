//! What stands in the parentheses: `self.state as st, crate = path`.

use proc_macro2::Ident;
use syn::{
    Error, Expr, ExprCast, Path, Result, Token, Type,
    parse::{Parse, ParseStream},
    parse_quote,
};

/// The arguments of an attribute.
pub(crate) struct Args {
    /// `None`: the object lock of `self`.
    pub(crate) lock: Option<Expr>,
    /// What the guarded value is called.
    pub(crate) binding: Option<Ident>,
    /// The path of `leasehold`.
    pub(crate) leasehold: Path,
}

impl Parse for Args {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut args = Self { lock: None, binding: None, leasehold: parse_quote!(::leasehold) };
        if !input.is_empty() && !input.peek(Token![crate]) {
            args.set_lock(input.parse()?)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if input.peek(Token![crate]) {
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            args.leasehold = input.parse()?;
        }
        if input.is_empty() {
            return Ok(args);
        }
        Err(input.error("expected `LOCK`, `LOCK as NAME`, and then `crate = PATH`, or nothing"))
    }
}

impl Args {
    fn set_lock(&mut self, expr: Expr) -> Result<()> {
        let Expr::Cast(ExprCast { expr, ty, .. }) = expr else {
            self.lock = Some(expr);
            return Ok(());
        };
        let name = match &*ty {
            Type::Path(path) if path.qself.is_none() => path.path.get_ident().cloned(),
            _ => None,
        };
        self.binding = Some(name.ok_or_else(|| {
            Error::new_spanned(ty, "expected the name that the guarded value shall have")
        })?);
        self.lock = Some(*expr);
        Ok(())
    }
}
