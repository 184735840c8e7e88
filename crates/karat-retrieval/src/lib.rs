//! The retrieval evaluation: does tool search find the right tools?
//!
//! [`trec`] reads and scores the file formats that the search community exchanges.

pub mod trec;
