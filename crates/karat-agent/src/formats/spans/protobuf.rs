//! OTLP in protobuf, turned into OTLP's JSON.
//!
//! Only the fields that are read are decoded, and nothing is trusted: lengths are checked against the
//! bytes that are there, values nest to a limit, and the number of values in a message is bounded, since
//! two bytes can say "an empty value" and memory for it is a hundred times that.

use karat_io::text::hex;
use serde_json::{Map, Value, json};

/// The depth of values in values, and the number of fields of one message.
const MAX_DEPTH: usize = 32;
const MAX_FIELDS: usize = 4_000_000;

/// The content of one field.
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

struct Decoder {
    left: usize,
}

type Decoded<T> = Result<T, String>;

/// One export request of traces or logs as JSON.
///
/// # Errors
/// If the bytes are not such a request.
pub(crate) fn to_json(bytes: &[u8]) -> Result<Value, String> {
    let mut decoder = Decoder { left: MAX_FIELDS };
    let (mut spans, mut logs) = (Vec::new(), Vec::new());
    for field in decoder.fields(bytes)? {
        if let (1, Content::Bytes(batch)) = field {
            let (batch, is_log) = decoder.batch(batch)?;
            let all = if is_log { &mut logs } else { &mut spans };
            all.push(batch);
        }
    }
    let mut all = Map::new();
    if !logs.is_empty() {
        all.insert("resourceLogs".to_owned(), logs.into());
    }
    if !spans.is_empty() || all.is_empty() {
        all.insert("resourceSpans".to_owned(), spans.into());
    }
    Ok(Value::Object(all))
}

/// The messages of a file: one, or several with their length in four bytes before each.
///
/// # Errors
/// If the file is cut off or is something else.
pub(crate) fn messages(bytes: &[u8]) -> Result<Vec<&[u8]>, String> {
    if bytes.first() != Some(&0) {
        return Ok(vec![bytes]);
    }
    let (mut rest, mut all) = (bytes, Vec::new());
    while !rest.is_empty() {
        let cut_off = || format!("is cut off in message {}", all.len() + 1);
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(cut_off)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (message, after) = after.split_at_checked(length).ok_or_else(cut_off)?;
        all.push(message);
        rest = after;
    }
    Ok(all)
}

impl Decoder {
    fn fields<'a>(&mut self, mut bytes: &'a [u8]) -> Decoded<Vec<(u64, Content<'a>)>> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            self.left = self.left.checked_sub(1).ok_or("has too many values")?;
            let tag = varint(&mut bytes)?;
            let content = match tag & 7 {
                0 => Content::Number(varint(&mut bytes)?),
                1 => {
                    let (number, rest) = bytes.split_first_chunk::<8>().ok_or(CUT_OFF)?;
                    bytes = rest;
                    Content::Number(u64::from_le_bytes(*number))
                }
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).map_err(|_| CUT_OFF)?;
                    let (inside, rest) = bytes.split_at_checked(length).ok_or(CUT_OFF)?;
                    bytes = rest;
                    Content::Bytes(inside)
                }
                5 => {
                    let (number, rest) = bytes.split_first_chunk::<4>().ok_or(CUT_OFF)?;
                    bytes = rest;
                    Content::Number(u64::from(u32::from_le_bytes(*number)))
                }
                kind => return Err(format!("has a field of the unknown type {kind}")),
            };
            fields.push((tag >> 3, content));
        }
        Ok(fields)
    }

    /// The spans or log records of one resource, and whether they are log records.
    fn batch(&mut self, bytes: &[u8]) -> Decoded<(Value, bool)> {
        let (mut resource, mut scopes, mut is_log) = (Value::Null, Vec::new(), false);
        for field in self.fields(bytes)? {
            match field {
                (1, Content::Bytes(inside)) => resource = self.resource(inside)?,
                (2, Content::Bytes(inside)) => {
                    let (mut records, mut name) = (Vec::new(), String::new());
                    for field in self.fields(inside)? {
                        match field {
                            (1, Content::Bytes(scope)) => {
                                for field in self.fields(scope)? {
                                    if let (1, Content::Bytes(found)) = field {
                                        name = text(found);
                                    }
                                }
                            }
                            (2, Content::Bytes(record)) => {
                                // A span begins with its id, a log record with its time.
                                let log = is_log_record(record);
                                is_log |= log;
                                let read = if log { self.log(record)? } else { self.span(record)? };
                                records.push(read);
                            }
                            _ => {}
                        }
                    }
                    scopes.push((name, records));
                }
                _ => {}
            }
        }
        let (scope_key, key) =
            if is_log { ("scopeLogs", "logRecords") } else { ("scopeSpans", "spans") };
        let scope = |(name, records)| json!({"scope": {"name": name}, key: records});
        let scopes: Vec<Value> = scopes.into_iter().map(scope).collect();
        Ok((json!({"resource": resource, scope_key: scopes}), is_log))
    }

    fn resource(&mut self, bytes: &[u8]) -> Decoded<Value> {
        let fields = self.fields(bytes)?;
        Ok(json!({"attributes": self.pairs(&fields, 1, 0)?}))
    }

    fn span(&mut self, bytes: &[u8]) -> Decoded<Value> {
        let fields = self.fields(bytes)?;
        let mut span = Map::new();
        let mut events = Vec::new();
        for (number, content) in &fields {
            let (key, value) = match (number, content) {
                (1, Content::Bytes(id)) => ("traceId", hex(id).into()),
                (2, Content::Bytes(id)) => ("spanId", hex(id).into()),
                (4, Content::Bytes(id)) => ("parentSpanId", hex(id).into()),
                (5, Content::Bytes(name)) => ("name", text(name).into()),
                (7, Content::Number(time)) => ("startTimeUnixNano", time.to_string().into()),
                (8, Content::Number(time)) => ("endTimeUnixNano", time.to_string().into()),
                (11, Content::Bytes(event)) => {
                    let inside = self.fields(event)?;
                    let attributes = self.pairs(&inside, 3, 0)?;
                    let name = inside.iter().find_map(|field| match field {
                        (2, Content::Bytes(name)) => Some(text(name)),
                        _ => None,
                    });
                    events.push(json!({"name": name, "attributes": attributes}));
                    continue;
                }
                (15, Content::Bytes(status)) => {
                    let mut found = Map::new();
                    for field in self.fields(status)? {
                        match field {
                            (2, Content::Bytes(message)) => {
                                found.insert("message".to_owned(), text(message).into());
                            }
                            (3, Content::Number(code)) => {
                                found.insert("code".to_owned(), code.into());
                            }
                            _ => {}
                        }
                    }
                    ("status", found.into())
                }
                _ => continue,
            };
            span.insert(key.to_owned(), value);
        }
        span.insert("attributes".to_owned(), self.pairs(&fields, 9, 0)?.into());
        span.insert("events".to_owned(), events.into());
        Ok(Value::Object(span))
    }

    fn log(&mut self, bytes: &[u8]) -> Decoded<Value> {
        let fields = self.fields(bytes)?;
        let mut log = Map::new();
        for (number, content) in &fields {
            let (key, value) = match (number, content) {
                (1, Content::Number(time)) => ("timeUnixNano", time.to_string().into()),
                (5, Content::Bytes(body)) => ("body", self.value(body, 0)?),
                (9, Content::Bytes(id)) => ("traceId", hex(id).into()),
                (10, Content::Bytes(id)) => ("spanId", hex(id).into()),
                (11, Content::Number(time)) => ("observedTimeUnixNano", time.to_string().into()),
                (12, Content::Bytes(name)) => ("eventName", text(name).into()),
                _ => continue,
            };
            log.insert(key.to_owned(), value);
        }
        log.insert("attributes".to_owned(), self.pairs(&fields, 6, 0)?.into());
        Ok(Value::Object(log))
    }

    /// The attributes among fields: those with this number.
    fn pairs(
        &mut self,
        fields: &[(u64, Content<'_>)],
        number: u64,
        depth: usize,
    ) -> Decoded<Vec<Value>> {
        let mut pairs = Vec::new();
        for field in fields {
            let (found, Content::Bytes(pair)) = field else { continue };
            if *found != number {
                continue;
            }
            let (mut key, mut value) = (String::new(), json!({}));
            for field in self.fields(pair)? {
                match field {
                    (1, Content::Bytes(name)) => key = text(name),
                    (2, Content::Bytes(inside)) => value = self.value(inside, depth)?,
                    _ => {}
                }
            }
            pairs.push(json!({"key": key, "value": value}));
        }
        Ok(pairs)
    }

    fn value(&mut self, bytes: &[u8], depth: usize) -> Decoded<Value> {
        if depth > MAX_DEPTH {
            return Err("has values that nest too deeply".to_owned());
        }
        let mut value = json!({});
        for field in self.fields(bytes)? {
            value = match field {
                (1, Content::Bytes(inside)) => json!({"stringValue": text(inside)}),
                (2, Content::Number(number)) => json!({"boolValue": number != 0}),
                (3, Content::Number(number)) => {
                    json!({"intValue": number.cast_signed().to_string()})
                }
                (4, Content::Number(number)) => json!({"doubleValue": f64::from_bits(number)}),
                (5, Content::Bytes(inside)) => {
                    let mut values = Vec::new();
                    for field in self.fields(inside)? {
                        if let (1, Content::Bytes(one)) = field {
                            values.push(self.value(one, depth + 1)?);
                        }
                    }
                    json!({"arrayValue": {"values": values}})
                }
                (6, Content::Bytes(inside)) => {
                    let fields = self.fields(inside)?;
                    json!({"kvlistValue": {"values": self.pairs(&fields, 1, depth + 1)?}})
                }
                _ => value,
            };
        }
        Ok(value)
    }
}

const CUT_OFF: &str = "is cut off";

fn varint(bytes: &mut &[u8]) -> Decoded<u64> {
    let mut number = 0_u64;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(CUT_OFF)?;
        *bytes = rest;
        if shift < 64 {
            number |= u64::from(byte & 0x7f) << shift;
        }
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("has a number that is too long".to_owned())
}

/// Returns whether a record is a log record: the first field of a span is its id, which is bytes.
fn is_log_record(mut record: &[u8]) -> bool {
    !matches!(varint(&mut record), Ok(tag) if tag >> 3 <= 2 && tag & 7 == 2)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
