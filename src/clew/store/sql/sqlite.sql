-- What only SQLite says this way.

-- name: integrity
PRAGMA integrity_check(20)

-- name: foreign_keys
PRAGMA foreign_key_check

-- name: search_store
-- Which log this is and the highest ids it ever gave. Not max(id): after the newest rows were
-- deleted an index that knows them would look like one of a later state of the log.
SELECT (SELECT value FROM meta WHERE name = 'store_id'),
  (SELECT value FROM meta WHERE name = 'stamp'),
  coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0),
  coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change'), 0)

-- name: search_rows
-- As search_rows_between, for ids given as a JSON array; in no particular order.
{{searchable}} FROM json_each(:ids) AS wanted CROSS JOIN message AS m CROSS JOIN conversation AS c
WHERE m.id = wanted.value AND {{searched}}
