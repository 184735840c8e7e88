//! Sums over rows that merge exactly.

use karat_metrics::stats::ExactSum;

use crate::Error;
use crate::bytes::{Reader, Writer};

/// The values of one metric over some rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub(crate) n: u64,
    pub(crate) sum: ExactSum,
}

impl Sum {
    pub(crate) fn add(&mut self, value: f64) {
        self.n += 1;
        self.sum.add(value);
    }

    pub(crate) fn merge(&mut self, other: &Sum) {
        self.n += other.n;
        self.sum.merge(&other.sum);
    }

    /// The number of hits, if every value is 0 or 1.
    pub(crate) fn hits(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a sum of ones is whole and not negative"
        )]
        let hits = self.sum.value().max(0.0) as u64;
        hits.min(self.n)
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.count(self.n);
        if self.n > 0 {
            out.bytes(&self.sum.to_bytes());
        }
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Sum, Error> {
        let n = from.rows()?;
        if n == 0 {
            return Ok(Sum::default());
        }
        let sum = ExactSum::from_bytes(from.bytes()?);
        Ok(Sum { n, sum: sum.ok_or_else(|| from.damaged("a sum"))? })
    }
}

/// One metric over all rows, apart from the sums of groups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Total {
    /// The rows on which the metric is undefined.
    pub(crate) left_out: u64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// True if every value is 0 or 1.
    pub(crate) is_binary: bool,
    /// The rows without a group, and the squares of their values.
    pub(crate) alone: Sum,
    pub(crate) squares: ExactSum,
}

impl Default for Total {
    fn default() -> Total {
        Total {
            left_out: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            is_binary: true,
            alone: Sum::default(),
            squares: ExactSum::default(),
        }
    }
}

impl Total {
    /// Takes note of a value; its sum is kept by its group, if it has one.
    pub(crate) fn note(&mut self, value: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.is_binary &= value == 0.0 || value == 1.0;
    }

    /// Adds the value of a row without a group.
    pub(crate) fn add_alone(&mut self, value: f64) {
        self.alone.add(value);
        // Rounded once for each row, so the sum is still the same in any order.
        self.squares.add(value * value);
    }

    pub(crate) fn merge(&mut self, other: &Total) {
        self.left_out += other.left_out;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.is_binary &= other.is_binary;
        self.alone.merge(&other.alone);
        self.squares.merge(&other.squares);
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.count(self.left_out);
        out.number(self.min);
        out.number(self.max);
        out.count(u64::from(self.is_binary));
        self.alone.write(out);
        out.bytes(&self.squares.to_bytes());
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Total, Error> {
        let (left_out, min, max) = (from.rows()?, from.number()?, from.number()?);
        let is_binary = from.count()? == 1;
        let alone = Sum::read(from)?;
        let squares = ExactSum::from_bytes(from.bytes()?);
        let squares = squares.ok_or_else(|| from.damaged("a sum"))?;
        Ok(Total { left_out, min, max, is_binary, alone, squares })
    }
}
