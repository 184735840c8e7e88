//! The name of a slice.

use crate::report::{Item, Property};

/// A slice by the property and its value; written `by=value`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SliceKey {
    /// The property.
    pub by: String,
    /// Its value.
    pub value: String,
}

impl std::fmt::Display for SliceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.by, self.value)
    }
}

impl std::str::FromStr for SliceKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((by, value)) if !by.is_empty() && !value.is_empty() => {
                Ok(SliceKey { by: by.to_owned(), value: value.to_owned() })
            }
            _ => {
                Err(format!("{text:?} is not a slice; expected property=value, such as split=test"))
            }
        }
    }
}

impl SliceKey {
    /// Returns whether an item belongs to the slice. It belongs to one for each of its tags, which are in it
    /// in one line.
    pub(crate) fn holds(&self, item: &Item) -> bool {
        let tagged = |tags: &str| format!(", {tags}, ").contains(&format!(", {}, ", self.value));
        item.tags.get(&self.by) == Some(&self.value)
            || (self.by == Property::Tag.name() && item.tag(Property::Tags).is_some_and(tagged))
    }
}
