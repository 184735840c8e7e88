//! Prices of models, for runs whose cost was not recorded.
//!
//! A table is TOML or JSON: `[prices."gpt-4o"]` with `input`, `output` and, where it differs,
//! `cached_input`, each for a million tokens. Prices change and differ by contract, so none is built in:
//! a cost from a guessed price would be a made-up number.

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::error::EvalError;
use karat_io::input::{self, Limits};
use serde::Deserialize;

use crate::trace::{Trace, Usage};

/// The prices of one model, for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    /// Input tokens.
    pub(crate) input: f64,
    /// Output tokens, those of reasoning included.
    pub(crate) output: f64,
    /// Input tokens from a cache; as other input tokens if it is not stated.
    pub(crate) cached_input: Option<f64>,
}

/// Prices by model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    prices: BTreeMap<String, Price>,
}

impl Prices {
    /// Reads a table.
    ///
    /// # Errors
    /// If the file is not valid, or a price is negative.
    pub(crate) fn load(path: &Path) -> Result<Self, EvalError> {
        let table: Prices = input::load(path, &Limits::default())?;
        let amount = |price: f64| price.is_finite() && price >= 0.0;
        let valid = |price: &Price| {
            amount(price.input) && amount(price.output) && price.cached_input.is_none_or(amount)
        };
        match table.prices.iter().find(|(_, price)| !valid(price)) {
            None => Ok(table),
            Some((model, _)) => {
                let path = path.display();
                Err(EvalError::config(format!(
                    "{path}: the price of {model:?} must not be negative"
                )))
            }
        }
    }

    /// The price of a model: by its name, or by the longest name that it begins with, since providers
    /// add a date to it.
    fn of(&self, model: &str) -> Option<&Price> {
        let begins = |name: &&String| {
            model.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['-', '@', ':']))
        };
        let by_start = || self.prices.keys().filter(begins).max_by_key(|name| name.len());
        self.prices.get(model).or_else(|| self.prices.get(by_start()?))
    }

    /// Sets the cost of a trace that has none, if its tokens and the price of its model are known.
    pub(crate) fn complete(&self, trace: &mut Trace) {
        let Usage { input_tokens, output_tokens, cached_tokens, cost, .. } = trace.usage;
        let price = trace.model.as_deref().and_then(|model| self.of(model));
        let (Some(input), Some(output), None, Some(price)) =
            (input_tokens, output_tokens, cost, price)
        else {
            return;
        };
        let cached = cached_tokens.unwrap_or_default().min(input);
        let million = (input - cached) as f64 * price.input
            + cached as f64 * price.cached_input.unwrap_or(price.input)
            + output as f64 * price.output;
        trace.usage.cost = Some(million / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_gives_the_price_and_a_recorded_cost_stays() {
        let price = |input| Price { input, output: 10.0, cached_input: Some(1.0) };
        let table = [("m".to_owned(), price(5.0)), ("m-mini".to_owned(), price(2.0))];
        let prices = Prices { prices: table.into() };
        let mut trace = Trace { model: Some("m-mini-2026-01-01".into()), ..Trace::of("t") };
        trace.usage = Usage {
            input_tokens: Some(1_000_000),
            output_tokens: Some(100_000),
            cached_tokens: Some(500_000),
            ..Usage::default()
        };
        prices.complete(&mut trace);
        assert_eq!(trace.usage.cost, Some(2.5));
        trace.usage.cost = Some(7.0);
        prices.complete(&mut trace);
        assert_eq!(trace.usage.cost, Some(7.0));
        let mut other = Trace { model: Some("mini".into()), usage: trace.usage, ..Trace::of("t") };
        other.usage.cost = None;
        prices.complete(&mut other);
        assert_eq!(other.usage.cost, None);
    }
}
