//! `karat server`: suites, load and lint against one live server.

mod lint;
mod load;
mod target;
mod test;

pub(crate) use self::lint::lint;
pub(crate) use self::load::load;
pub(crate) use self::test::test;
