//! Tables with commas or tabs (CSV and TSV), whose cells can be quoted.

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The line on which it starts, from 1.
    pub line: usize,
    /// Its cells, trimmed.
    pub cells: Vec<String>,
}

/// Reads the head and the rows of a table, its cells trimmed; empty lines are left out.
///
/// ```
/// let (head, rows) = karat_io::table::read("name,text\na,\"x, y\"\n", ',').unwrap();
/// assert_eq!(head, ["name", "text"]);
/// assert_eq!((rows[0].line, rows[0].cells[1].as_str()), (2, "x, y"));
/// ```
///
/// # Errors
/// The line of a quoted cell that has no end.
pub fn read(text: &str, divider: char) -> Result<(Vec<String>, Vec<Row>), usize> {
    let mut rows = Vec::new();
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let (mut line, mut start) = (1, 1);
    let (mut quoted, mut was_quoted) = (false, false);
    let mut letters = text.trim_start_matches('\u{FEFF}').chars().peekable();
    loop {
        let letter = letters.next();
        match letter {
            Some('"') if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            Some('"') if quoted => quoted = false,
            None if quoted => return Err(start),
            Some(letter) if quoted => {
                line += usize::from(letter == '\n');
                cell.push(letter);
            }
            Some('"') if cell.trim().is_empty() => {
                cell.clear();
                (quoted, was_quoted) = (true, true);
            }
            Some(letter) if letter == divider => cells.push(taken(&mut cell)),
            Some('\n') | None => {
                if !cells.is_empty() || was_quoted || !cell.trim().is_empty() {
                    cells.push(taken(&mut cell));
                    rows.push(Row { line: start, cells: std::mem::take(&mut cells) });
                }
                cell.clear();
                line += 1;
                (start, was_quoted) = (line, false);
                if letter.is_none() {
                    break;
                }
            }
            Some(letter) => cell.push(letter),
        }
    }
    let head = if rows.is_empty() { Vec::new() } else { rows.remove(0).cells };
    Ok((head, rows))
}

/// Returns the first row that has fewer cells than the head, or more.
pub fn uneven<'r>(head: &[String], rows: &'r [Row]) -> Option<&'r Row> {
    rows.iter().find(|row| row.cells.len() != head.len())
}

fn taken(cell: &mut String) -> String {
    std::mem::take(cell).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_can_be_quoted_and_hold_dividers_and_lines() {
        let text = "\u{FEFF}a,b\r\n1,\"x, \"\"y\"\"\nz\"\r\n\r\n, 2 \n3";
        let (head, rows) = read(text, ',').unwrap();
        assert_eq!(head, ["a", "b"]);
        let found: Vec<_> = rows.iter().map(|row| (row.line, row.cells.join("|"))).collect();
        let expected = [(2, "1|x, \"y\"\nz"), (5, "|2"), (6, "3")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
        assert_eq!(read("a\nb\n\"c\n", ',').err(), Some(3));
        assert!(read("", ',').unwrap().0.is_empty());
        assert_eq!(uneven(&head, &rows).map(|row| row.line), Some(6));
    }
}
