//! One compiled reader for each type, whatever format its text is in.
//!
//! The code that makes a type is generic over the reader of the format, and most types can be written in
//! several formats with several readers each. Here the reader is behind a pointer (`erased_serde`), so that
//! the code of a type is compiled once. What this costs at run time does not matter for files that people
//! write; JSON, in which large data comes, keeps readers of its own.
//!
//! `erased_serde` passes errors of a format on as text, without their place. The wrappers here hold an error
//! back where it passes from the format to the type, and hand it over unchanged where it returns.

use std::cell::Cell;
use std::fmt::{self, Display};

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

use super::place::{Fault, FaultKind};

/// A reader behind a pointer.
pub(super) type Reader<'r, 'de> = &'r mut dyn erased_serde::Deserializer<'de>;

/// Makes a value of a reader and keeps it.
pub(super) type Make<'m> =
    &'m mut (dyn for<'r, 'de> FnMut(Reader<'r, 'de>) -> Result<(), erased_serde::Error> + Send);

/// Makes a type of a document that `read` puts behind a pointer: code that is compiled once, since it does
/// not know the type.
pub(super) fn typed<T: DeserializeOwned + Send>(
    read: impl FnOnce(Make<'_>) -> Result<(), Fault>,
) -> Result<T, Fault> {
    let mut value = None;
    read(&mut |reader| {
        value = Some(erased_serde::deserialize(reader)?);
        Ok(())
    })?;
    value.ok_or_else(|| Fault {
        line: 1,
        column: 1,
        kind: FaultKind::Syntax("there is nothing in this".to_owned()),
    })
}

/// Puts a reader behind a pointer for `make`.
pub(super) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
    make: Make<'_>,
) -> Result<(), D::Error> {
    let held = Held::default();
    let adapter = Adapter { inner: deserializer, held: &held };
    make(&mut <dyn erased_serde::Deserializer<'_>>::erase(adapter))
        .map_err(|error| held.restore(Failure::Other(error.to_string())))
}

/// The text of an error that is held back.
const HELD: &str = "an error of the format";

/// An error of a format on its way through code that does not know it.
struct Held<E>(Cell<Option<E>>);

impl<E> Default for Held<E> {
    fn default() -> Self {
        Self(Cell::new(None))
    }
}

impl<E: de::Error> Held<E> {
    fn hold(&self, error: E) -> Failure {
        self.0.set(Some(error));
        Failure::Other(HELD.to_owned())
    }

    fn restore(&self, failure: Failure) -> E {
        match failure {
            Failure::Other(message) if message == HELD => {
                self.0.take().unwrap_or_else(|| E::custom(message))
            }
            other => other.of_format(),
        }
    }
}

/// An error of a type, in the distinctions that serde makes.
#[derive(Debug)]
enum Failure {
    Other(String),
    InvalidType { unexpected: String, expected: String },
    InvalidValue { unexpected: String, expected: String },
    InvalidLength { length: usize, expected: String },
    UnknownVariant { variant: String, expected: &'static [&'static str] },
    UnknownField { field: String, expected: &'static [&'static str] },
    MissingField(&'static str),
    DuplicateField(&'static str),
}

impl Failure {
    fn of_format<E: de::Error>(self) -> E {
        match self {
            Self::Other(message) => E::custom(message),
            Self::InvalidType { unexpected, expected } => {
                E::invalid_type(Unexpected::Other(&unexpected), &expected.as_str())
            }
            Self::InvalidValue { unexpected, expected } => {
                E::invalid_value(Unexpected::Other(&unexpected), &expected.as_str())
            }
            Self::InvalidLength { length, expected } => {
                E::invalid_length(length, &expected.as_str())
            }
            Self::UnknownVariant { variant, expected } => E::unknown_variant(&variant, expected),
            Self::UnknownField { field, expected } => E::unknown_field(&field, expected),
            Self::MissingField(field) => E::missing_field(field),
            Self::DuplicateField(field) => E::duplicate_field(field),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(message) => f.write_str(message),
            // Serde's own sentences for the other cases.
            Self::InvalidType { unexpected, expected } => {
                write!(f, "invalid type: {unexpected}, expected {expected}")
            }
            Self::InvalidValue { unexpected, expected } => {
                write!(f, "invalid value: {unexpected}, expected {expected}")
            }
            Self::InvalidLength { length, expected } => {
                write!(f, "invalid length {length}, expected {expected}")
            }
            Self::UnknownVariant { variant, expected } => {
                de::value::Error::unknown_variant(variant, expected).fmt(f)
            }
            Self::UnknownField { field, expected } => {
                de::value::Error::unknown_field(field, expected).fmt(f)
            }
            Self::MissingField(field) => de::value::Error::missing_field(field).fmt(f),
            Self::DuplicateField(field) => de::value::Error::duplicate_field(field).fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::InvalidType { unexpected: unexpected.to_string(), expected: expected.to_string() }
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::InvalidValue { unexpected: unexpected.to_string(), expected: expected.to_string() }
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::InvalidLength { length, expected: expected.to_string() }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::UnknownVariant { variant: variant.to_owned(), expected }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::UnknownField { field: field.to_owned(), expected }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::MissingField(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::DuplicateField(field)
    }
}

/// A part of a format (a reader, or access to what is inside one) whose errors are held back.
struct Adapter<'h, P, E> {
    inner: P,
    held: &'h Held<E>,
}

/// Forwards methods of [`Deserializer`] that take a visitor and, before it, arguments of their own.
macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, Failure> {
            self.inner.$method($($argument,)* Receiver(visitor)).map_err(|error| self.held.hold(error))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Adapter<'_, D, D::Error> {
    type Error = Failure;

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Adapter<'_, A, A::Error> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Failure> {
        self.inner.next_key_seed(Receiver(seed)).map_err(|error| self.held.hold(error))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        self.inner.next_value_seed(Receiver(seed)).map_err(|error| self.held.hold(error))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Adapter<'_, A, A::Error> {
    type Error = Failure;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Failure> {
        self.inner.next_element_seed(Receiver(seed)).map_err(|error| self.held.hold(error))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, 'h, A: EnumAccess<'de>> EnumAccess<'de> for Adapter<'h, A, A::Error> {
    type Error = Failure;
    type Variant = Adapter<'h, A::Variant, A::Error>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), Failure> {
        match self.inner.variant_seed(Receiver(seed)) {
            Ok((name, inner)) => Ok((name, Adapter { inner, held: self.held })),
            Err(error) => Err(self.held.hold(error)),
        }
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Adapter<'_, A, A::Error> {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        self.inner.unit_variant().map_err(|error| self.held.hold(error))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Failure> {
        self.inner.newtype_variant_seed(Receiver(seed)).map_err(|error| self.held.hold(error))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.inner.tuple_variant(length, Receiver(visitor)).map_err(|error| self.held.hold(error))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.inner.struct_variant(fields, Receiver(visitor)).map_err(|error| self.held.hold(error))
    }
}

/// What a type gives to a format (a visitor or a seed): it gets back the errors that were held.
struct Receiver<R>(R);

/// Forwards methods of [`Visitor`] that take a plain value.
macro_rules! values {
    ($($method:ident($type:ty);)*) => {
        $(fn $method<E: de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$method(value).map_err(Failure::of_format)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Receiver<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    values! {
        visit_bool(bool);
        visit_i8(i8);
        visit_i16(i16);
        visit_i32(i32);
        visit_i64(i64);
        visit_i128(i128);
        visit_u8(u8);
        visit_u16(u16);
        visit_u32(u32);
        visit_u64(u64);
        visit_u128(u128);
        visit_f32(f32);
        visit_f64(f64);
        visit_char(char);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(String);
        visit_bytes(&[u8]);
        visit_borrowed_bytes(&'de [u8]);
        visit_byte_buf(Vec<u8>);
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none().map_err(Failure::of_format)
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit().map_err(Failure::of_format)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let held = Held::default();
        let adapter = Adapter { inner: deserializer, held: &held };
        self.0.visit_some(adapter).map_err(|failure| held.restore(failure))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<V::Value, D::Error> {
        let held = Held::default();
        let adapter = Adapter { inner: deserializer, held: &held };
        self.0.visit_newtype_struct(adapter).map_err(|failure| held.restore(failure))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        let held = Held::default();
        let adapter = Adapter { inner: items, held: &held };
        self.0.visit_seq(adapter).map_err(|failure| held.restore(failure))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        let held = Held::default();
        let adapter = Adapter { inner: entries, held: &held };
        self.0.visit_map(adapter).map_err(|failure| held.restore(failure))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        let held = Held::default();
        let adapter = Adapter { inner: data, held: &held };
        self.0.visit_enum(adapter).map_err(|failure| held.restore(failure))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Receiver<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let held = Held::default();
        let adapter = Adapter { inner: deserializer, held: &held };
        self.0.deserialize(adapter).map_err(|failure| held.restore(failure))
    }
}
