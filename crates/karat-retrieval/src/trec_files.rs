//! TREC files for the readers of the crate `trec`.

use std::io::{self, Cursor};
use std::path::Path;
use std::sync::Arc;

use karat_io::input::{self, InputError, Limits};
use trec::{Input, MAX_LINE_BYTES};

/// The largest number of bytes of an input that can be read only once, because it is kept in memory.
const MAX_PIPE_BYTES: u64 = 512 << 20;

/// A TREC file, which may be compressed, or a pipe.
///
/// # Errors
/// If it cannot be opened; if it is not a file, if it cannot be read.
pub fn open(path: &Path) -> Result<Input, InputError> {
    if path.is_file() {
        input::open(path)?;
        let name = path.to_owned();
        return Ok(Input::new(path, move || input::open(&name).map_err(io::Error::other)));
    }
    let content: Arc<[u8]> = read_once(path)?.into();
    Ok(Input::new(path, move || Ok(Cursor::new(Arc::clone(&content)))))
}

/// Reads a pipe or a device. In blocks of lines, because a device such as /dev/zero never
/// ends, and has none.
fn read_once(path: &Path) -> Result<Vec<u8>, InputError> {
    let limits = Limits { bytes: MAX_PIPE_BYTES, line_bytes: MAX_LINE_BYTES, ..Limits::default() };
    let mut blocks = input::blocks(path, &limits)?;
    let (mut content, mut block) = (Vec::new(), Vec::new());
    loop {
        let line = |content: &[u8]| content.split(|byte| *byte == b'\n').count() as u64;
        blocks.next_block(&mut block).map_err(|error| error.at_line(line(&content)))?;
        if block.is_empty() {
            return Ok(content);
        }
        content.append(&mut block);
    }
}
