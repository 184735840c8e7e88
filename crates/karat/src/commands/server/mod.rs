//! `karat server`: suites, load, lint, fuzzing and attacks against one live server.

mod attack;
mod call;
mod detectors;
mod fuzz;
mod lint;
mod load;
mod probing;
mod recording;
mod scan;
pub(crate) mod target;
mod test;

pub(crate) use self::attack::attack;
pub(crate) use self::call::call;
pub(crate) use self::detectors::inspect;
pub(crate) use self::fuzz::fuzz;
pub(crate) use self::lint::lint;
pub(crate) use self::load::load;
pub(crate) use self::scan::scan;
pub(crate) use self::test::test;
