//! Karat's own format: one record per line, see docs/agent.md.

use super::Importer;
use crate::trace::{Invalid, Trace};

pub(super) struct Native;

impl Importer for Native {
    fn take(&mut self, text: &str, _line: u64, out: &mut Vec<Trace>) -> Result<(), Invalid> {
        out.push(Trace::parse(text)?);
        Ok(())
    }
}
