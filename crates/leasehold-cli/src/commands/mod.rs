//! The commands of the program, one file each; `run` in three parts.

pub(crate) mod list;
pub(crate) mod run;
pub(crate) mod show;

mod hold;
mod keep;
mod wait;
