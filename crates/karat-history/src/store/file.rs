//! Opening the file: recognizes a history, and brings an older one up to date.
//!
//! A file that is something else is never written to, not even its header. A step of [`STEPS`] never
//! changes; a change of the tables is a further step.

use std::path::Path;

use karat_io::input::{create_folder, refuse_links};
use karat_io::template::percent_encoded;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::HistoryError;

/// The steps that create a new file or bring an older one up to date, one for each version.
pub(super) const STEPS: &[&str] =
    &[include_str!("schema.sql"), include_str!("kind.sql"), include_str!("branch.sql")];

/// `KART`, the application id in the SQLite header.
const KIND: i64 = 0x4B41_5254;

/// The time to wait for another process that writes.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// The database, and the files that SQLite keeps next to it.
const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Opens a file that must exist.
pub(super) fn open(path: &Path) -> Result<Connection, HistoryError> {
    if !path.exists() {
        return Err(HistoryError::Missing { path: path.to_owned() });
    }
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, STEPS)
}

/// Opens a file that must exist, to read it alone. One that cannot be written, nor its folder, is taken as it
/// is: nothing changes it then.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, HistoryError> {
    match open(path) {
        Err(HistoryError::Database { source, .. }) if unwritable(&*source) => immutable(path),
        opened => opened,
    }
}

fn unwritable(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let code = error.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}

fn immutable(path: &Path) -> Result<Connection, HistoryError> {
    let absolute = std::path::absolute(path).map_err(|error| HistoryError::Database {
        path: path.to_owned(),
        source: Box::new(error),
    })?;
    let absolute = absolute.to_string_lossy();
    let folders: Vec<String> = absolute.split('/').map(percent_encoded).collect();
    let address = format!("file:{}?mode=ro&immutable=1", folders.join("/"));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(address, flags).map_err(failed(path))?;
    connection.pragma_update(None, "trusted_schema", false).map_err(failed(path))?;
    match recognize(&connection, path, STEPS) {
        Ok(version) if version == STEPS.len() => Ok(connection),
        Ok(_) => Err(HistoryError::Foreign {
            path: path.to_owned(),
            why:
                "it has an earlier format and cannot be upgraded in a read-only folder; copy it to another folder"
                    .to_owned(),
        }),
        Err(Refused::Sqlite(source)) => Err(failed(path)(source)),
        Err(Refused::History(error)) => Err(error),
    }
}

/// Opens a file, or creates one.
pub(super) fn open_or_create(path: &Path) -> Result<Connection, HistoryError> {
    create_folder(path.parent().unwrap_or(Path::new("")))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    connect(path, flags, STEPS)
}

/// A history in memory.
pub(super) fn in_memory(name: &Path) -> Result<Connection, HistoryError> {
    let failed = failed(name);
    let mut connection = Connection::open_in_memory().map_err(&failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(&failed)?;
    update(&mut connection, STEPS).map_err(&failed)?;
    Ok(connection)
}

/// Turns an error of SQLite into one of the history.
pub(super) fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> HistoryError + use<> {
    let path = path.to_owned();
    move |source| {
        let path = path.clone();
        match is_damage(&source) {
            true => HistoryError::Broken { path, why: source.to_string() },
            false => HistoryError::Database { path, source: source.into() },
        }
    }
}

/// Returns whether an error is about the contents of the file: broken pages, or values that no history has.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
    };
    let of_value = matches!(
        error,
        FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)
            | Utf8Error(..)
    );
    of_value || error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

fn connect(path: &Path, flags: OpenFlags, steps: &[&str]) -> Result<Connection, HistoryError> {
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            let why = "it is not a SQLite file".to_owned();
            HistoryError::Foreign { path: path.to_owned(), why }
        }
        _ => failed(path)(source),
    };
    if path.is_dir() {
        let why = "it is a folder".to_owned();
        return Err(HistoryError::Foreign { path: path.to_owned(), why });
    }
    for file in SUFFIXES.map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name
    }) {
        refuse_links(Path::new(&file))?;
    }
    // Without SQLITE_OPEN_URI: a name such as file:x?mode=memory is only a name.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    // Functions in the schema of a stranger's file must not run.
    connection.pragma_update(None, "trusted_schema", false).map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    let version = recognize(&connection, path, steps).map_err(|refused| match refused {
        Refused::Sqlite(source) => failed(source),
        Refused::History(error) => error,
    })?;
    if version < steps.len() {
        let _: String = connection
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .map_err(failed)?;
        update(&mut connection, steps).map_err(failed)?;
    }
    Ok(connection)
}

enum Refused {
    Sqlite(rusqlite::Error),
    History(HistoryError),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Refused {
        Refused::Sqlite(error)
    }
}

/// The number of steps that the file has behind it; does not change the file.
fn recognize(connection: &Connection, path: &Path, steps: &[&str]) -> Result<usize, Refused> {
    let number = |pragma: &str| -> rusqlite::Result<i64> {
        connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))
    };
    let (kind, version) = (number("application_id")?, number("user_version")?);
    let found = objects(connection)?;
    let foreign =
        |why: String| Refused::History(HistoryError::Foreign { path: path.to_owned(), why });
    if kind == 0 && version == 0 && found.is_empty() {
        return Ok(0);
    }
    if kind != KIND {
        return Err(foreign(format!("it is a database of another application, {kind:#x}")));
    }
    let supported = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if version > supported {
        let path = path.to_owned();
        return Err(Refused::History(HistoryError::Newer { path, found: version, supported }));
    }
    let done = usize::try_from(version).unwrap_or(0);
    let mut expected = Connection::open_in_memory()?;
    update(&mut expected, steps.get(..done).unwrap_or(steps))?;
    if found != objects(&expected)? {
        return Err(foreign("its tables do not belong to a history".to_owned()));
    }
    Ok(done)
}

/// Everything that the file defines, as SQL.
fn objects(connection: &Connection) -> rusqlite::Result<Vec<(String, String, Option<String>)>> {
    let mut query =
        connection.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

/// Takes the steps that are missing, all or none.
fn update(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again inside the transaction: another process may have been faster.
    let version: i64 = change.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    for step in steps.iter().skip(usize::try_from(version).unwrap_or(usize::MAX)) {
        change.execute_batch(step)?;
    }
    change.pragma_update(None, "application_id", KIND)?;
    change.pragma_update(None, "user_version", i64::try_from(steps.len()).unwrap_or(i64::MAX))?;
    change.commit()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is a failed test")]

    use super::*;

    const WRITE: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_CREATE);
    const FIRST: &str = "CREATE TABLE a (x TEXT)";
    const SECOND: &str = "ALTER TABLE a ADD COLUMN y TEXT NOT NULL DEFAULT 'new'";

    fn row(connection: &Connection, sql: &str) -> String {
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_older_file_is_brought_up_to_date_and_keeps_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h");
        connect(&path, WRITE, &[FIRST])
            .unwrap()
            .execute("INSERT INTO a VALUES ('kept')", [])
            .unwrap();
        let newer = connect(&path, WRITE, &[FIRST, SECOND]).unwrap();
        assert_eq!(row(&newer, "SELECT x || y FROM a"), "keptnew");
        assert_eq!(row(&newer, "PRAGMA journal_mode"), "wal");
        // The steps are not taken twice.
        drop(newer);
        connect(&path, WRITE, &[FIRST, SECOND]).unwrap();
    }

    #[test]
    fn the_kinds_of_older_entries_are_filled_in_where_they_are_certain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h");
        let old = connect(&path, WRITE, &STEPS[..1]).unwrap();
        old.execute_batch(
            "INSERT INTO runs VALUES (1, 'd', 's', 'k', NULL, 'pass', x'00');
             INSERT INTO subjects VALUES (1, 'retrieval', 'a'), (2, 'server', 'b');
             INSERT INTO entries VALUES (1, 1, 1, 'pass', NULL, 't', 'v1', 'd', 's', 1, NULL),
               (2, 1, 2, 'pass', NULL, 't', 'v1', 'd', 's', 1, NULL),
               (3, 1, 1, 'not measured', 'r', NULL, NULL, NULL, '', 0, NULL);",
        )
        .unwrap();
        drop(old);
        let new = connect(&path, WRITE, STEPS).unwrap();
        let kinds =
            "SELECT group_concat(ifnull(kind, '-')) FROM (SELECT kind FROM entries ORDER BY id)";
        assert_eq!(row(&new, kinds), "ranking,-,-");
    }

    #[test]
    fn a_file_of_a_later_version_is_refused_and_left_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h");
        drop(connect(&path, WRITE, &[FIRST, SECOND]).unwrap());
        let before = std::fs::read(&path).unwrap();
        let refused = connect(&path, WRITE, &[FIRST]).unwrap_err();
        assert!(matches!(refused, HistoryError::Newer { found: 2, supported: 1, .. }), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_history_that_nothing_may_write_to_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a history?#%.sqlite");
        drop(connect(&path, WRITE, STEPS).unwrap());
        let before = std::fs::read(&path).unwrap();
        let own = immutable(&path).unwrap();
        assert_eq!(row(&own, "SELECT CAST(count(*) AS TEXT) FROM runs"), "0");
        assert!(own.execute("DELETE FROM runs", []).is_err());
        drop(own);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_with_an_added_trigger_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h");
        let own = connect(&path, WRITE, &[FIRST]).unwrap();
        own.execute_batch("CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; END").unwrap();
        drop(own);
        let refused = connect(&path, WRITE, &[FIRST]).unwrap_err();
        assert!(matches!(refused, HistoryError::Foreign { .. }), "{refused}");
    }
}
