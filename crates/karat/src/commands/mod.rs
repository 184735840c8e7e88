//! One file for each command.

pub(crate) mod agent;
pub(crate) mod baseline;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod corpus;
pub(crate) mod demo;
pub(crate) mod detection;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod metrics;
pub(crate) mod pages;
pub(crate) mod places;
pub(crate) mod real_servers;
pub(crate) mod resilience;
pub(crate) mod retrieval;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod server;
pub(crate) mod trec;
