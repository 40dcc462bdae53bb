-- Statements of the search tables: see store/search. :match is an expression of TSQUERY.

-- name: search_mark_read
SELECT format, store_id, stamp, message, change, profile, unreadable, oversized FROM search_mark

-- name: search_mark_rows
SELECT coalesce((SELECT rows FROM search_mark), 0)

-- name: search_mark_insert
-- Does not wait for the one who has the row locked.
INSERT INTO search_mark(format) VALUES (:format) ON CONFLICT(only_one) DO NOTHING

-- name: search_mark_lock
-- One host at a time; another one is told so at once, by no row.
SELECT format, store_id, stamp, message, change, profile, unreadable, oversized FROM search_mark
FOR UPDATE SKIP LOCKED

-- name: search_mark_set
UPDATE search_mark SET store_id = :store_id, stamp = :stamp, message = :message,
  change = :change, profile = :profile, unreadable = :unreadable, oversized = :oversized,
  rows = rows + :grown

-- name: search_mark_clear
UPDATE search_mark SET format = :format, store_id = NULL, stamp = NULL, message = 0, change = 0,
  profile = NULL, unreadable = 0, oversized = 0, rows = 0

-- name: search_text_insert
INSERT INTO search_text(id, words) VALUES (:id, CAST(:words AS tsvector))

-- name: search_text_merge
SELECT clew_search_merge()

-- name: search_text_delete
DELETE FROM search_text WHERE id BETWEEN :first AND :last

-- name: search_text_clear
-- Not TRUNCATE, which would wait for every query and have the next ones wait for it.
DELETE FROM search_text

-- name: search_text_walk
-- Which of the newest rows match. The inner LIMIT leaves the planner one way: along the ids.
SELECT id FROM (
  SELECT id, words FROM search_text WHERE id < :below ORDER BY id DESC LIMIT :limit) AS newest
WHERE words @@ CAST(:match AS tsquery)
ORDER BY id DESC

-- name: search_text_found
-- MATERIALIZED leaves the planner one way: the inverted index. Were it to choose, it would take a
-- word that it does not know for common, and look at every row one by one.
WITH found AS MATERIALIZED (
  SELECT id FROM search_text WHERE words @@ CAST(:match AS tsquery))
SELECT id FROM found WHERE id < :below ORDER BY id DESC LIMIT :limit

-- name: search_text_frequency
SELECT count(*) FILTER (WHERE words @@ CAST(:match AS tsquery)), count(*)
FROM (SELECT words FROM search_text ORDER BY id DESC LIMIT :most) AS newest

-- name: search_text_size
SELECT pg_total_relation_size('search_text') + pg_total_relation_size('search_mark')
