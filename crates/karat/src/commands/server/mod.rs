//! `karat server`: suites, load, lint, fuzzing and attacks against one live server.

mod attack;
mod call;
mod config_scan;
mod detectors;
mod distil;
mod drift;
mod fuzz;
pub(crate) mod lint;
mod load;
mod login;
mod migration;
mod probing;
mod recording;
mod scan;
mod score;
pub(crate) mod suggest;
pub(crate) mod target;
mod test;

pub(crate) use self::attack::attack;
pub(crate) use self::call::call;
pub(crate) use self::detectors::inspect;
pub(crate) use self::distil::{distil, record};
pub(crate) use self::drift::drift;
pub(crate) use self::fuzz::fuzz;
pub(crate) use self::lint::lint;
pub(crate) use self::load::{load, merge as merge_loads};
pub(crate) use self::login::{login, logout, show_prompt};
pub(crate) use self::migration::migration;
pub(crate) use self::scan::scan;
pub(crate) use self::score::score;
pub(crate) use self::suggest::{propose, suggest};
pub(crate) use self::test::test;
