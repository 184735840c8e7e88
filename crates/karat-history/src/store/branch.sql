-- The branch that was measured, and the first line of the commit's message.
ALTER TABLE runs ADD COLUMN branch TEXT;
ALTER TABLE runs ADD COLUMN commit_subject TEXT;
