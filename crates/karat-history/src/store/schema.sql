CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  digest TEXT NOT NULL UNIQUE,
  started TEXT NOT NULL,
  karat TEXT NOT NULL,
  commit_id TEXT,
  state TEXT NOT NULL,
  document BLOB NOT NULL
);
CREATE INDEX runs_in_time ON runs (started, id);
CREATE TABLE subjects (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  evaluation TEXT NOT NULL,
  name TEXT NOT NULL,
  UNIQUE (evaluation, name)
);
CREATE TABLE metrics (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  subject INTEGER NOT NULL REFERENCES subjects (id),
  state TEXT NOT NULL,
  reason TEXT,
  dataset TEXT,
  dataset_version TEXT,
  dataset_digest TEXT,
  system TEXT NOT NULL,
  items INTEGER NOT NULL,
  headline INTEGER REFERENCES metrics (id)
);
CREATE INDEX entries_of_run ON entries (run, id);
CREATE INDEX entries_of_subject ON entries (subject, run);
CREATE TABLE measured (
  entry INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  metric INTEGER NOT NULL REFERENCES metrics (id),
  value REAL,
  n INTEGER NOT NULL,
  better TEXT NOT NULL,
  low REAL,
  high REAL,
  level REAL,
  method TEXT,
  undefined TEXT,
  PRIMARY KEY (entry, position)
) WITHOUT ROWID;
