//! `karat server`: suites and lint against one live server.

mod lint;
mod target;
mod test;

pub(crate) use self::lint::lint;
pub(crate) use self::test::test;
