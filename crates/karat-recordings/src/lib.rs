//! Recorded runs of agents under attack.
//!
//! [`read()`] reads the runs of a folder or an archive, in any of the formats, in one pass into one shape:
//! [`Run`]. [`delivery`] decides whether an injected text arrived, [`declines`] whether an answer refuses.
//!
//! A crate of its own, since it alone of the resilience evaluation is compiled for speed.

mod agentdojo;
mod asb;
pub mod delivery;
mod read;
mod refusal;
mod run;
mod store;

pub use read::{Filter, Format, Reader, Recordings, is_added_in_1_2, read, read_all, read_whole};
pub use refusal::declines;
pub use run::Run;
pub use store::Runs;
