//! A bounded parser of server-sent events.

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its type; `message` if it has none.
    pub(crate) kind: String,
    /// Its data, the lines joined.
    pub(crate) data: Vec<u8>,
}

/// Parses bytes in any portions.
#[derive(Default)]
pub(crate) struct EventStream {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    skip_newline: bool,
    /// The id of the last event that had one, for resuming after a lost connection.
    pub(crate) last_id: Option<String>,
    /// The pause that the server wants before a stream is resumed.
    pub(crate) retry_milliseconds: Option<u64>,
}

/// An event is larger than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl EventStream {
    /// Parses more bytes and passes complete events to `found`.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        limit: usize,
        mut found: impl FnMut(Event),
    ) -> Result<(), TooLarge> {
        // An empty portion must not reset `skip_newline`.
        if bytes.is_empty() {
            return Ok(());
        }
        let mut rest = bytes;
        if std::mem::take(&mut self.skip_newline) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            self.line.extend_from_slice(&rest[..end]);
            let carriage = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if carriage {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.skip_newline = true,
                }
            }
            self.take_line(&mut found);
            if self.event.data.len() > limit {
                return Err(TooLarge);
            }
        }
        self.line.extend_from_slice(rest);
        if self.line.len() + self.event.data.len() > limit.saturating_add(64) {
            return Err(TooLarge);
        }
        Ok(())
    }

    fn take_line(&mut self, found: &mut impl FnMut(Event)) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let mut event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                if event.kind.is_empty() {
                    "message".clone_into(&mut event.kind);
                }
                found(event);
            }
        } else {
            let (field, value) = match memchr::memchr(b':', &line) {
                Some(colon) => (&line[..colon], &line[colon + 1..]),
                None => (&line[..], &[][..]),
            };
            self.take_field(field, value.strip_prefix(b" ").unwrap_or(value));
        }
        self.line = line;
        self.line.clear();
    }

    fn take_field(&mut self, field: &[u8], value: &[u8]) {
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"data" | b"\xef\xbb\xbfdata" => {
                if self.has_data {
                    self.event.data.push(b'\n');
                }
                self.has_data = true;
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.kind = text(),
            b"id" if !value.contains(&0) => self.last_id = Some(text()),
            b"retry" => self.retry_milliseconds = text().parse().ok(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(pieces: &[&[u8]]) -> (Vec<Event>, EventStream) {
        let mut stream = EventStream::default();
        let mut events = Vec::new();
        for piece in pieces {
            stream.push(piece, 1_000, |event| events.push(event)).unwrap();
        }
        (events, stream)
    }

    fn event(kind: &str, data: &str) -> Event {
        Event { kind: kind.to_owned(), data: data.as_bytes().to_vec() }
    }

    #[test]
    fn events_do_not_depend_on_the_portions() {
        let text = b": hello\r\nevent: endpoint\r\ndata: /x\r\n\r\nid: 7\ndata: a\ndata:b\n\nretry: 50\r\rdata: \xc3\xa4\n\n";
        let expected = [event("endpoint", "/x"), event("message", "a\nb"), event("message", "ä")];
        let (events, stream) = all(&[text]);
        assert_eq!(events, expected);
        assert_eq!((stream.last_id.as_deref(), stream.retry_milliseconds), (Some("7"), Some(50)));
        for size in 1..9 {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(all(&pieces).0, expected, "{size}");
        }
        assert_eq!(all(&[b"data: a\r", b"", b"\ndata: b\n\n"]).0, [event("message", "a\nb")]);
    }

    proptest! {
        #[test]
        fn events_of_any_bytes_do_not_depend_on_the_portions(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(vec!["\n", "\r", "\r\n", "data:", "data: x", "id: 1", "event:", ":"])
                        .prop_map(|text| text.as_bytes().to_vec()),
                    prop::collection::vec(any::<u8>(), 0..5),
                ],
                0..30,
            )
        ) {
            let whole = pieces.concat();
            let cut: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(all(&cut).0, all(&[&whole]).0);
        }
    }

    #[test]
    fn an_event_without_data_is_ignored() {
        assert_eq!(all(&[b"id: 1\n\nevent: x\n\n"]).0, []);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut stream = EventStream::default();
        let long = vec![b'x'; 2_000];
        assert_eq!(stream.push(&long, 1_000, |_| {}), Err(TooLarge));
        let mut stream = EventStream::default();
        let lines = b"data: 0123456789\n".repeat(200);
        assert_eq!(stream.push(&lines, 1_000, |_| {}), Err(TooLarge));
    }
}
