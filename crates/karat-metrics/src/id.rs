//! The id of a metric as a type.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use crate::registry::{self, Metric};

/// The id of a metric, such as `recall@5`. Cheap to clone, and compared, ordered and hashed as its
/// text.
///
/// An id of the program itself is checked at compile time ([`MetricId::known`]), one that a user
/// types is checked against the [registry](crate::registry) ([`MetricId::parse`]), and one from a
/// file of another tool or version is kept as it is ([`MetricId::new`]).
///
/// ```
/// use karat_metrics::MetricId;
///
/// const RECALL_5: MetricId = MetricId::known("recall@5");
/// assert_eq!(RECALL_5.definition().map(|metric| metric.id), Some("recall@k"));
///
/// let error = MetricId::parse("recal@5").unwrap_err();
/// assert_eq!(error.to_string(), "unknown metric `recal@5`; did you mean `recall@5`?");
///
/// let foreign = MetricId::new("their.metric");
/// assert_eq!((foreign.as_str(), foreign.definition()), ("their.metric", None));
/// ```
#[derive(Clone)]
pub struct MetricId(Text);

#[derive(Clone)]
enum Text {
    Static(&'static str),
    Shared(Arc<str>),
}

impl MetricId {
    /// The id of a metric that the registry knows. In a constant, an unknown id does not compile.
    ///
    /// ```compile_fail
    /// const MISTYPED: karat_metrics::MetricId = karat_metrics::MetricId::known("recal@5");
    /// # let _ = MISTYPED;
    /// ```
    ///
    /// # Panics
    /// If the registry does not know the id. Use it in constants only, where that is an error of the
    /// compiler.
    #[must_use]
    pub const fn known(id: &'static str) -> MetricId {
        assert!(registry::find(id).is_some(), "the registry has no metric with this id");
        MetricId(Text::Static(id))
    }

    /// Checks an id against the registry.
    ///
    /// # Errors
    /// If the registry does not know the id; the error suggests the nearest one.
    pub fn parse(id: &str) -> Result<MetricId, UnknownMetric> {
        match registry::find(id) {
            Some(_) => Ok(MetricId::new(id)),
            None => Err(UnknownMetric { id: id.to_owned(), nearest: registry::nearest(id) }),
        }
    }

    /// Takes any id, known or not.
    #[must_use]
    pub fn new(id: &str) -> MetricId {
        match registry::find(id) {
            Some(metric) if metric.id == id => MetricId(Text::Static(metric.id)),
            _ => MetricId(Text::Shared(id.into())),
        }
    }

    /// The id of a metric at a cut-off, if it has one.
    pub(crate) fn at_cutoff(metric: &'static Metric, cutoff: Option<NonZeroU32>) -> MetricId {
        match cutoff {
            Some(k) => {
                let stem = metric.id.trim_end_matches('k');
                MetricId(Text::Shared(format!("{stem}{k}").into()))
            }
            None => MetricId(Text::Static(metric.id)),
        }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Static(id) => id,
            Text::Shared(id) => id,
        }
    }

    /// The definition in the registry; `None` if the registry does not know the id.
    #[must_use]
    pub fn definition(&self) -> Option<&'static Metric> {
        registry::find(self)
    }
}

/// The [`MetricId`] of a metric that the registry knows; any other id does not compile.
///
/// ```
/// use karat_metrics::metric;
///
/// assert_eq!(metric!("recall@5"), "recall@5");
/// ```
///
/// ```compile_fail
/// let mistyped = karat_metrics::metric!("recal@5");
/// ```
#[macro_export]
macro_rules! metric {
    ($id:literal) => {
        const { $crate::MetricId::known($id) }
    };
}

/// An id that the registry does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMetric {
    /// The unknown id.
    pub id: String,
    /// The nearest known id, if one is near enough.
    pub nearest: Option<String>,
}

impl fmt::Display for UnknownMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown metric `{}`", self.id)?;
        match &self.nearest {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownMetric {}

impl FromStr for MetricId {
    type Err = UnknownMetric;

    /// As [`MetricId::parse`].
    fn from_str(id: &str) -> Result<MetricId, UnknownMetric> {
        MetricId::parse(id)
    }
}

impl fmt::Display for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Deref for MetricId {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for MetricId {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for MetricId {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq for MetricId {
    fn eq(&self, other: &MetricId) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for MetricId {}

impl PartialOrd for MetricId {
    fn partial_cmp(&self, other: &MetricId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MetricId {
    fn cmp(&self, other: &MetricId) -> Ordering {
        self.as_str().cmp(other)
    }
}

impl Hash for MetricId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialEq<str> for MetricId {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for MetricId {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for MetricId {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl From<&str> for MetricId {
    /// As [`MetricId::new`].
    fn from(id: &str) -> MetricId {
        MetricId::new(id)
    }
}

impl From<MetricId> for String {
    fn from(id: MetricId) -> String {
        id.as_str().to_owned()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for MetricId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for MetricId {
    /// Takes any string, known or not: a report of another version may have other metrics.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<MetricId, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = MetricId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the id of a metric")
            }

            fn visit_str<E>(self, id: &str) -> Result<MetricId, E> {
                Ok(MetricId::new(id))
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for MetricId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MetricId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;

    #[test]
    fn ids_with_the_same_text_are_equal_whatever_holds_it() {
        const KNOWN: MetricId = MetricId::known("mrr");
        let shared = MetricId(Text::Shared("mrr".into()));
        assert_eq!(KNOWN, shared);
        assert_eq!(KNOWN.cmp(&shared), Ordering::Equal);
        assert_eq!(HashMap::from([(KNOWN, 1)]).get(&shared), Some(&1));
        assert_eq!(BTreeMap::from([(shared, 1)]).get("mrr"), Some(&1));
    }

    #[test]
    fn a_registered_id_is_not_copied() {
        assert!(matches!(MetricId::new("mrr").0, Text::Static("mrr")));
        assert!(matches!(MetricId::new("recall@5").0, Text::Shared(_)));
        assert!(std::mem::size_of::<MetricId>() <= 24);
    }

    #[test]
    fn an_unknown_id_is_an_error_unless_it_is_asked_for() {
        assert_eq!(MetricId::parse("recall@5").unwrap(), "recall@5");
        assert_eq!("ndcg@10".parse::<MetricId>().unwrap(), "ndcg@10");
        let error = "ncdg@10".parse::<MetricId>().unwrap_err();
        assert_eq!(error.nearest.as_deref(), Some("ndcg@10"));
        let error = MetricId::parse("nothing like it at all").unwrap_err();
        assert_eq!(error.to_string(), "unknown metric `nothing like it at all`");
        assert_eq!(MetricId::new("x.y").definition(), None);
    }

    #[test]
    fn a_variant_keeps_its_settings_and_has_the_definition_of_its_metric() {
        let id = MetricId::parse("deepeval.tool_correctness|ordered|name").unwrap();
        assert_eq!(id.as_str(), "deepeval.tool_correctness|ordered|name");
        assert_eq!(id.definition().map(|metric| metric.id), Some("deepeval.tool_correctness"));
    }

    #[test]
    fn an_id_is_padded_like_text() {
        assert_eq!(format!("{:<6}|", MetricId::known("mrr")), "mrr   |");
    }

    #[cfg(feature = "serde")]
    #[test]
    fn an_id_is_a_plain_string_in_json_also_as_a_key() {
        let scores = BTreeMap::from([(MetricId::known("mrr"), 0.5), (MetricId::new("x"), 1.0)]);
        let json = serde_json::to_string(&scores).unwrap();
        assert_eq!(json, r#"{"mrr":0.5,"x":1.0}"#);
        assert_eq!(serde_json::from_str::<BTreeMap<MetricId, f64>>(&json).unwrap(), scores);
        assert!(serde_json::from_str::<MetricId>("5").is_err());
    }
}
