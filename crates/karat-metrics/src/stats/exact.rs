//! Sums without rounding, so that they depend neither on the order of their terms nor on how these were
//! divided between machines.
//!
//! A floating-point number is a whole multiple of 2⁻¹⁰⁷⁴, so a sum of them is one too. It is kept as
//! two numbers as long as these suffice, which they do for scores, times and costs of like size, and as
//! one long integer otherwise. Rounding happens once, when the value is asked for.

use super::real;

/// The words of the long integer: bit 0 is 2⁻¹⁰⁷⁴, the largest term ends at bit 2098, and more than 2⁶⁴
/// of those fit below the sign.
const WORDS: usize = 34;
/// Terms of this size are added as integers: the sum of two of them may overflow.
const LARGE: f64 = 1e300;

/// A sum of floating-point numbers, kept exactly.
///
/// ```
/// use karat_metrics::stats::ExactSum;
///
/// let terms = [1.0, 1e100, 0.1, -1e100, 0.2];
/// let mut forwards = ExactSum::default();
/// terms.iter().for_each(|term| forwards.add(*term));
/// let (mut one, mut other) = (ExactSum::default(), ExactSum::default());
/// terms[..2].iter().rev().for_each(|term| one.add(*term));
/// terms[2..].iter().rev().for_each(|term| other.add(*term));
/// other.merge(&one);
/// assert_eq!(forwards, other);
/// assert_eq!(forwards.value(), 1.3);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExactSum {
    /// The rounded sum and the rest, unless `wide` has them.
    high: f64,
    low: f64,
    wide: Option<Box<Wide>>,
}

impl ExactSum {
    /// Adds a term. A term that is not finite makes the sum NaN for good.
    pub fn add(&mut self, term: f64) {
        if !term.is_finite() || self.high.is_nan() {
            *self = ExactSum { high: f64::NAN, low: 0.0, wide: None };
            return;
        }
        if let Some(wide) = &mut self.wide {
            return wide.add(term);
        }
        if term.abs() < LARGE && self.high.abs() < LARGE {
            let (sum, first_rest) = two_sum(term, self.low);
            let (sum, second_rest) = two_sum(sum, self.high);
            let (rest, lost) = two_sum(first_rest, second_rest);
            if lost == 0.0 {
                (self.high, self.low) = two_sum(sum, rest);
                return;
            }
        }
        let mut wide = Box::new(self.to_wide());
        wide.add(term);
        *self = ExactSum { high: 0.0, low: 0.0, wide: Some(wide) };
    }

    /// Adds all terms of another sum.
    pub fn merge(&mut self, other: &ExactSum) {
        match &other.wide {
            None => {
                self.add(other.high);
                self.add(other.low);
            }
            Some(_) if self.high.is_nan() => {}
            Some(terms) => {
                let mut wide = Box::new(self.to_wide());
                wide.add_all(terms);
                *self = ExactSum { high: 0.0, low: 0.0, wide: Some(wide) };
            }
        }
    }

    /// Returns the sum, rounded to the nearest number; infinite if it is too large for one.
    #[must_use]
    pub fn value(&self) -> f64 {
        match &self.wide {
            None => self.high,
            Some(wide) => wide.rounded(0),
        }
    }

    /// Returns the sum divided by the number of its terms; NaN without a term.
    #[must_use]
    pub fn mean(&self, terms: u64) -> f64 {
        let sum = self.value();
        if sum.is_finite() || sum.is_nan() {
            return sum / real(terms);
        }
        // Too large for one number, unlike the mean: by 2⁶⁴ less.
        self.to_wide().rounded(1) / real(terms) * 18_446_744_073_709_551_616.0
    }

    /// Returns bytes that are the same for equal sums, however they were added up; for
    /// [`from_bytes`](Self::from_bytes).
    ///
    /// ```
    /// use karat_metrics::stats::ExactSum;
    ///
    /// let sum = |terms: &[f64]| {
    ///     let mut sum = ExactSum::default();
    ///     terms.iter().for_each(|term| sum.add(*term));
    ///     sum
    /// };
    /// // 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ if they are rounded on the way.
    /// assert_eq!(sum(&[0.1, 0.2, 0.3]).to_bytes(), sum(&[0.3, 0.2, 0.1]).to_bytes());
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.high.is_nan() {
            return vec![u8::MAX];
        }
        let Wide(words) = self.to_wide();
        let negative = words[WORDS - 1] >> 63 == 1;
        let filler = if negative { u64::MAX } else { 0 };
        let start = words.iter().position(|word| *word != 0).unwrap_or(WORDS);
        let end = words.iter().rposition(|word| *word != filler).map_or(start, |last| last + 1);
        let mut bytes = vec![u8::from(negative), u8::try_from(start).unwrap_or(u8::MAX)];
        for word in &words[start.min(end)..end] {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; none if it is something else.
    ///
    /// ```
    /// use karat_metrics::stats::ExactSum;
    ///
    /// // Half of the sum was taken on another machine.
    /// let mut elsewhere = ExactSum::default();
    /// elsewhere.add(1e100);
    /// elsewhere.add(1.0);
    /// let mut here = ExactSum::from_bytes(&elsewhere.to_bytes()).unwrap();
    /// here.add(-1e100);
    /// assert_eq!(here.value(), 1.0);
    /// assert_eq!(ExactSum::from_bytes(b"something else"), None);
    /// ```
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<ExactSum> {
        if *bytes == [u8::MAX] {
            return Some(ExactSum { high: f64::NAN, low: 0.0, wide: None });
        }
        let (&[negative, start], rest) = bytes.split_first_chunk::<2>()?;
        let (chunks, odd) = rest.as_chunks::<8>();
        let start = usize::from(start);
        if negative > 1 || !odd.is_empty() || start + chunks.len() > WORDS {
            return None;
        }
        let filler = if negative == 1 { u64::MAX } else { 0 };
        let mut words = [filler; WORDS];
        words[..start].fill(0);
        words[start..].iter_mut().zip(chunks).for_each(|(word, chunk)| {
            *word = u64::from_le_bytes(*chunk);
        });
        let sum = ExactSum { high: 0.0, low: 0.0, wide: Some(Box::new(Wide(words))) };
        // One spelling for each sum: what differs was not written by `to_bytes`.
        (sum.to_bytes() == bytes).then(|| sum.narrowed())
    }

    /// The same sum as two numbers, if these suffice.
    fn narrowed(self) -> ExactSum {
        let Some(wide) = &self.wide else { return self };
        let high = wide.rounded(0);
        if high.abs() >= LARGE {
            return self;
        }
        let mut rest = wide.clone();
        rest.add(-high);
        let low = rest.rounded(0);
        rest.add(-low);
        match rest.0 == [0; WORDS] {
            true => ExactSum { high, low, wide: None },
            false => self,
        }
    }

    fn to_wide(&self) -> Wide {
        match &self.wide {
            Some(wide) => (**wide).clone(),
            None => {
                let mut wide = Wide([0; WORDS]);
                wide.add(self.high);
                wide.add(self.low);
                wide
            }
        }
    }
}

impl PartialEq for ExactSum {
    fn eq(&self, other: &ExactSum) -> bool {
        match (&self.wide, &other.wide) {
            // The first is the rounded sum and the second is the rest: there is one such pair.
            (None, None) => self.high == other.high && self.low == other.low,
            _ => !other.high.is_nan() && !self.high.is_nan() && self.to_wide() == other.to_wide(),
        }
    }
}

/// The rounded sum of two numbers and what rounding left out: together exactly their sum (Knuth).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

/// A whole multiple of 2⁻¹⁰⁷⁴ in two's complement, the lowest word first.
#[derive(Clone, Debug, PartialEq)]
struct Wide([u64; WORDS]);

impl Wide {
    fn add(&mut self, term: f64) {
        let bits = term.abs().to_bits();
        let (exponent, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
        let (mantissa, shift) = match exponent {
            0 => (fraction, 0),
            exponent => (fraction | 1 << 52, exponent - 1),
        };
        let spread = u128::from(mantissa) << (shift % 64);
        let place = usize::try_from(shift / 64).unwrap_or(0);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let halves = [spread as u64, (spread >> 64) as u64];
        let terms = halves.into_iter().chain(std::iter::repeat(0));
        let mut carry = false;
        for (number, (word, term_word)) in self.0[place..].iter_mut().zip(terms).enumerate() {
            if number > 1 && !carry {
                break;
            }
            (*word, carry) = match term.is_sign_negative() {
                false => with_carry(*word, term_word, carry),
                true => with_borrow(*word, term_word, carry),
            };
        }
    }

    fn add_all(&mut self, other: &Wide) {
        let mut carry = false;
        for (word, term) in self.0.iter_mut().zip(other.0) {
            (*word, carry) = with_carry(*word, term, carry);
        }
    }

    /// The nearest number, ties to even, after leaving out this many of the lowest words.
    fn rounded(&self, left_out: usize) -> f64 {
        let negative = self.0[WORDS - 1] >> 63 == 1;
        let mut words = self.0;
        if negative {
            let mut carry = true;
            for word in &mut words {
                (*word, carry) = (!*word).overflowing_add(u64::from(carry));
            }
        }
        let words = &words[left_out..];
        let Some(top) = words.iter().rposition(|word| *word != 0) else { return 0.0 };
        let highest = 64 * top + 63 - words[top].leading_zeros() as usize;
        let bit = |place: usize| words[place / 64] >> (place % 64) & 1 == 1;
        let bits = if highest < 53 {
            // A subnormal number, or the smallest normal ones: the bits are the integer itself.
            words[0]
        } else {
            let last = highest - 52;
            let word = |at: usize| words.get(at).copied().unwrap_or(0);
            let pair = u128::from(word(last / 64)) | u128::from(word(last / 64 + 1)) << 64;
            #[expect(clippy::cast_possible_truncation, reason = "masked to 53 bits")]
            let mantissa = (pair >> (last % 64)) as u64 & ((1 << 53) - 1);
            let below = last - 1;
            let rest = words[below / 64] & ((1 << (below % 64)) - 1);
            let sticky = rest != 0 || words[..below / 64].iter().any(|word| *word != 0);
            let up = bit(below) && (sticky || mantissa & 1 == 1);
            // A mantissa that rounds up to 2⁵³ carries into the exponent, as it must.
            let exponent = u64::try_from(last).unwrap_or(u64::MAX).saturating_add(1);
            if exponent >= 2047 {
                0x7ff << 52
            } else {
                (exponent << 52) + (mantissa & ((1 << 52) - 1)) + u64::from(up)
            }
        };
        let value = f64::from_bits(bits);
        if negative { -value } else { value }
    }
}

fn with_carry(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(u64::from(carry));
    (sum, first || second)
}

fn with_borrow(a: u64, b: u64, borrow: bool) -> (u64, bool) {
    let (rest, first) = a.overflowing_sub(b);
    let (rest, second) = rest.overflowing_sub(u64::from(borrow));
    (rest, first || second)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(terms: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        terms.iter().for_each(|term| sum.add(*term));
        sum
    }

    fn wide(terms: &[f64]) -> Wide {
        let mut wide = Wide([0; WORDS]);
        terms.iter().for_each(|term| wide.add(*term));
        wide
    }

    #[test]
    fn small_and_large_terms_keep_their_digits() {
        assert_eq!(sum(&[1e100, 1.0, -1e100]).value(), 1.0);
        assert_eq!(sum(&[0.1; 10]).value(), 1.0);
        assert_eq!(sum(&[f64::MIN_POSITIVE / 4.0, 1.0, -1.0]).value(), f64::MIN_POSITIVE / 4.0);
        assert_eq!(sum(&[1e308, 1e308, -1e308]).value(), 1e308);
        assert_eq!(sum(&[]).value(), 0.0);
        assert!(sum(&[f64::NAN, 1.0]).value().is_nan());
    }

    #[test]
    fn ties_go_to_the_even_neighbour() {
        let half = f64::EPSILON / 2.0;
        assert_eq!(sum(&[1.0, half]).value(), 1.0);
        assert_eq!(sum(&[1.0, half, f64::MIN_POSITIVE]).value(), 1.0 + f64::EPSILON);
        assert_eq!(wide(&[1.0, half]).rounded(0), 1.0);
        assert_eq!(wide(&[1.0, half, f64::MIN_POSITIVE]).rounded(0), 1.0 + f64::EPSILON);
        assert_eq!(wide(&[-1.0, -half, -f64::EPSILON]).rounded(0), -1.0 - 2.0 * f64::EPSILON);
    }

    #[test]
    fn a_mean_of_huge_terms_is_not_infinite() {
        assert_eq!(sum(&[f64::MAX; 4]).value(), f64::INFINITY);
        assert_eq!(sum(&[f64::MAX; 4]).mean(4), f64::MAX);
        assert_eq!(sum(&[-f64::MAX; 3]).mean(3), -f64::MAX);
        assert!(sum(&[]).mean(0).is_nan());
    }

    #[test]
    fn bytes_that_were_not_written_here_are_refused() {
        for bytes in [&[][..], &[0], &[2, 0], &[0, 40], &[0, 0, 1], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
        {
            assert_eq!(ExactSum::from_bytes(bytes), None, "{bytes:?}");
        }
        let long: Vec<u8> = [0, 30].into_iter().chain([1; 80]).collect();
        assert_eq!(ExactSum::from_bytes(&long), None);
    }

    fn term() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => 0.0..1.0f64,
            1 => any::<f64>().prop_filter("finite", |x| x.is_finite()),
            1 => prop_oneof![Just(f64::MAX), Just(-f64::MAX), Just(f64::MIN_POSITIVE), Just(5e-324)],
        ]
    }

    proptest! {
        #[test]
        fn order_and_division_do_not_matter(
            terms in prop::collection::vec(term(), 0..40),
            cut in 0..40usize,
        ) {
            let whole = sum(&terms);
            let cut = cut.min(terms.len());
            let (mut left, right) = (sum(&terms[..cut]), sum(&terms[cut..]));
            let mut other_way = right.clone();
            left.merge(&right);
            let reversed: Vec<f64> = terms[..cut].iter().rev().copied().collect();
            other_way.merge(&sum(&reversed));
            prop_assert_eq!(&left, &whole);
            prop_assert_eq!(&other_way, &whole);
            prop_assert_eq!(left.to_bytes(), other_way.to_bytes());
            prop_assert_eq!(left.value().to_bits(), whole.value().to_bits());
            let read = ExactSum::from_bytes(&whole.to_bytes()).unwrap();
            prop_assert_eq!(&read, &whole);
            prop_assert_eq!(read.value().to_bits(), whole.value().to_bits());
        }

        #[test]
        fn two_numbers_and_the_long_integer_agree(
            terms in prop::collection::vec(-1e9..1e9f64, 0..60),
        ) {
            // 0 and -0 are one sum.
            prop_assert_eq!(sum(&terms).value() + 0.0, wide(&terms).rounded(0) + 0.0);
        }

        #[test]
        fn a_sum_of_whole_numbers_is_theirs(
            terms in prop::collection::vec(-(1i64 << 40)..(1i64 << 40), 0..60),
        ) {
            let exact: i64 = terms.iter().sum();
            let floats: Vec<f64> = terms.iter().map(|term| *term as f64).collect();
            prop_assert_eq!(sum(&floats).value(), exact as f64);
        }
    }
}
