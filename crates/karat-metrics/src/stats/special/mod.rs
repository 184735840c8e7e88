//! The special functions for the intervals and tests, on `libm` alone.
//!
//! They promise about twelve correct digits over the arguments the statistics need, including
//! counts up to 2^64, in bounded time. They are not a general mathematics library: arguments outside
//! a function's stated domain are the caller's responsibility.

pub(super) mod beta;
pub(super) mod binomial;
pub(super) mod normal;
pub(super) mod student;
