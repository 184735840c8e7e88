ALTER TABLE entries ADD COLUMN kind TEXT;
UPDATE entries SET kind = (
  SELECT CASE evaluation WHEN 'retrieval' THEN 'ranking' WHEN 'detection' THEN 'verdicts' END
  FROM subjects WHERE subjects.id = entries.subject
) WHERE dataset IS NOT NULL;
