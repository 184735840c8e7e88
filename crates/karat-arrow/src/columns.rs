//! Columns of a batch by name, with the types that engines give them.
//!
//! Text may be plain, large, a view or a dictionary, lists may be large, numbers of any width: engines
//! differ in these without meaning anything by it. Everything else is an error that names the column,
//! its type and the one that is expected. A column of type null has no value in any row.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, LargeStringArray, PrimitiveArray, RecordBatch, StringArray,
    StringViewArray, StructArray,
};
use arrow_schema::DataType;

use crate::{Error, Kind};

/// The columns of a batch.
pub(crate) struct Columns<'b> {
    pub(crate) kind: Kind,
    batch: &'b RecordBatch,
}

impl<'b> Columns<'b> {
    pub(crate) fn of(kind: Kind, batch: &'b RecordBatch) -> Self {
        Columns { kind, batch }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'b ArrayRef> {
        self.batch.column_by_name(name)
    }

    /// A column that must be there.
    pub(crate) fn need(&self, name: &str, expected: &str) -> Result<&'b ArrayRef, Error> {
        self.find(name).ok_or_else(|| Error::MissingColumn {
            kind: self.kind,
            column: name.to_owned(),
            expected: expected.to_owned(),
            found: self.names(),
        })
    }

    fn names(&self) -> String {
        let schema = self.batch.schema_ref();
        let mut names: Vec<&str> =
            schema.fields().iter().take(40).map(|field| field.name().as_str()).collect();
        if schema.fields().len() > names.len() {
            names.push("…");
        }
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// A column of text that may be missing.
    pub(crate) fn text(&self, name: &str) -> Result<Option<Text<'b>>, Error> {
        self.find(name).map(|array| Text::of(name, array)).transpose()
    }

    /// A column of text that must be there and have no null.
    pub(crate) fn full_text(&self, name: &str) -> Result<Text<'b>, Error> {
        let text = Text::of(name, self.need(name, "text")?)?;
        no_null(name, self.batch.num_rows(), |row| text.get(row).is_none())?;
        Ok(text)
    }

    /// A column of numbers that may be missing.
    pub(crate) fn number(&self, name: &str) -> Result<Option<Number<'b>>, Error> {
        self.find(name).map(|array| Number::of(name, array)).transpose()
    }

    /// A column of truth values that may be missing.
    pub(crate) fn truth(&self, name: &str) -> Result<Option<Truth<'b>>, Error> {
        self.find(name).map(|array| Truth::of(name, array)).transpose()
    }
}

/// Refuses a null.
pub(crate) fn no_null(
    column: &str,
    rows: usize,
    is_null: impl Fn(usize) -> bool,
) -> Result<(), Error> {
    match (0..rows).find(|row| is_null(*row)) {
        None => Ok(()),
        Some(row) => Err(Error::Null { column: column.to_owned(), row }),
    }
}

pub(crate) fn wrong_type(column: &str, array: &dyn Array, expected: &str) -> Error {
    Error::ColumnType {
        column: column.to_owned(),
        found: described(array.data_type()),
        expected: expected.to_owned(),
    }
}

/// A type as text, short enough for a message.
fn described(found: &DataType) -> String {
    karat_io::text::clip(&found.to_string(), 200).into_owned()
}

/// A column of text.
pub(crate) enum Text<'b> {
    Plain(&'b StringArray),
    Large(&'b LargeStringArray),
    View(&'b StringViewArray),
    Dictionary { keys: Vec<usize>, nulls: &'b dyn Array, values: Box<Text<'b>> },
    Nothing,
}

impl<'b> Text<'b> {
    pub(crate) fn of(name: &str, array: &'b ArrayRef) -> Result<Text<'b>, Error> {
        if let Some(array) = array.as_string_opt::<i32>() {
            return Ok(Text::Plain(array));
        }
        if let Some(array) = array.as_string_opt::<i64>() {
            return Ok(Text::Large(array));
        }
        if let Some(array) = array.as_string_view_opt() {
            return Ok(Text::View(array));
        }
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            if dictionary.values().is_empty() {
                return Ok(Text::Nothing);
            }
            let values = Text::of(name, dictionary.values())?;
            let keys = dictionary.normalized_keys();
            return Ok(Text::Dictionary {
                keys,
                nulls: dictionary.keys(),
                values: Box::new(values),
            });
        }
        match array.data_type() {
            DataType::Null => Ok(Text::Nothing),
            _ => Err(wrong_type(name, array, "text (utf8)")),
        }
    }

    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        match self {
            Text::Plain(array) => (!array.is_null(row)).then(|| array.value(row)),
            Text::Large(array) => (!array.is_null(row)).then(|| array.value(row)),
            Text::View(array) => (!array.is_null(row)).then(|| array.value(row)),
            Text::Dictionary { keys, nulls, values } => match nulls.is_null(row) {
                true => None,
                false => values.get(keys[row]),
            },
            Text::Nothing => None,
        }
    }
}

/// A column of lists.
pub(crate) struct Lists<'b> {
    array: &'b dyn Array,
    offsets: Offsets<'b>,
    /// The entries of all lists.
    pub(crate) values: &'b ArrayRef,
}

enum Offsets<'b> {
    Small(&'b [i32]),
    Large(&'b [i64]),
}

impl<'b> Lists<'b> {
    /// The lists of a column; none if it has type null.
    pub(crate) fn of(
        name: &str,
        array: &'b ArrayRef,
        expected: &str,
    ) -> Result<Option<Lists<'b>>, Error> {
        if let Some(list) = array.as_list_opt::<i32>() {
            let offsets = Offsets::Small(list.value_offsets());
            return Ok(Some(Lists { array, offsets, values: list.values() }));
        }
        if let Some(list) = array.as_list_opt::<i64>() {
            let offsets = Offsets::Large(list.value_offsets());
            return Ok(Some(Lists { array, offsets, values: list.values() }));
        }
        match array.data_type() {
            DataType::Null => Ok(None),
            _ => Err(wrong_type(name, array, expected)),
        }
    }

    /// The places of a row's entries; none if the list is null.
    pub(crate) fn range(&self, row: usize) -> Option<Range<usize>> {
        if self.array.is_null(row) {
            return None;
        }
        let (start, end) = match self.offsets {
            Offsets::Small(offsets) => (i64::from(offsets[row]), i64::from(offsets[row + 1])),
            Offsets::Large(offsets) => (offsets[row], offsets[row + 1]),
        };
        Some(usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0))
    }
}

/// The fields of a struct.
pub(crate) struct Fields<'b> {
    column: String,
    array: &'b StructArray,
}

impl<'b> Fields<'b> {
    pub(crate) fn of(column: &str, array: &'b ArrayRef, expected: &str) -> Result<Self, Error> {
        match array.as_struct_opt() {
            Some(array) => Ok(Fields { column: column.to_owned(), array }),
            None => Err(wrong_type(column, array, expected)),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<Text<'b>>, Error> {
        let path = format!("{}.{name}", self.column);
        self.array.column_by_name(name).map(|array| Text::of(&path, array)).transpose()
    }

    pub(crate) fn need_text(&self, kind: Kind, name: &str) -> Result<Text<'b>, Error> {
        self.text(name)?.ok_or_else(|| self.missing(kind, name, "text"))
    }

    pub(crate) fn need_number(&self, kind: Kind, name: &str) -> Result<Number<'b>, Error> {
        let path = format!("{}.{name}", self.column);
        match self.array.column_by_name(name) {
            Some(array) => Number::of(&path, array),
            None => Err(self.missing(kind, name, "a whole number")),
        }
    }

    fn missing(&self, kind: Kind, name: &str, expected: &str) -> Error {
        Error::MissingColumn {
            kind,
            column: format!("{}.{name}", self.column),
            expected: expected.to_owned(),
            found: self.array.column_names().join(", "),
        }
    }
}

macro_rules! numbers {
    ($($variant:ident $type:ident),*) => {
        /// A column of numbers.
        pub(crate) enum Number<'b> {
            $($variant(&'b PrimitiveArray<$type>),)*
            Nothing,
        }

        impl<'b> Number<'b> {
            pub(crate) fn of(name: &str, array: &'b ArrayRef) -> Result<Number<'b>, Error> {
                $(if let Some(array) = array.as_primitive_opt::<$type>() {
                    return Ok(Number::$variant(array));
                })*
                match array.data_type() {
                    DataType::Null => Ok(Number::Nothing),
                    _ => Err(wrong_type(name, array, "a number")),
                }
            }

            /// The number of a row.
            pub(crate) fn get(&self, row: usize) -> Option<f64> {
                match self {
                    $(Number::$variant(array) => {
                        (!array.is_null(row)).then(|| array.value(row) as f64)
                    })*
                    Number::Nothing => None,
                }
            }
        }
    };
}

numbers!(
    F64 Float64Type, F32 Float32Type, I64 Int64Type, I32 Int32Type, I16 Int16Type, I8 Int8Type,
    U64 UInt64Type, U32 UInt32Type, U16 UInt16Type, U8 UInt8Type
);

impl Number<'_> {
    /// The whole number of a row, if it is one that a count can be.
    pub(crate) fn count(&self, row: usize) -> Option<u64> {
        match self {
            Number::I64(array) => {
                (!array.is_null(row)).then(|| u64::try_from(array.value(row)).ok()).flatten()
            }
            Number::U64(array) => (!array.is_null(row)).then(|| array.value(row)),
            other => {
                let number = other.get(row).filter(|number| *number >= 0.0 && *number < 9e15);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "not negative, and below 2⁵³"
                )]
                number.map(|number| number as u64)
            }
        }
    }
}

/// A column of truth values.
pub(crate) enum Truth<'b> {
    Plain(&'b BooleanArray),
    Nothing,
}

impl<'b> Truth<'b> {
    pub(crate) fn of(name: &str, array: &'b ArrayRef) -> Result<Truth<'b>, Error> {
        match array.as_boolean_opt() {
            Some(array) => Ok(Truth::Plain(array)),
            None if *array.data_type() == DataType::Null => Ok(Truth::Nothing),
            None => Err(wrong_type(name, array, "true or false (bool)")),
        }
    }

    pub(crate) fn get(&self, row: usize) -> Option<bool> {
        match self {
            Truth::Plain(array) => (!array.is_null(row)).then(|| array.value(row)),
            Truth::Nothing => None,
        }
    }
}
