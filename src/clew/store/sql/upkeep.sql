-- Statements of the doctor that all engines share: what was left half done.

-- name: open_turns
SELECT c.id, c.profile, t.number, t.state, c.holder, c.held_at, c.held_ttl
FROM turn t JOIN conversation c ON c.no = t.conversation_no
WHERE t.state IN ('running', 'waiting') AND c.binned_at IS NULL
ORDER BY t.started_at

-- name: waiting_without_turn
SELECT c.id, c.profile, c.waiting FROM conversation c
WHERE c.no IN (SELECT conversation_no FROM inbox WHERE state = 'waiting')
  AND c.turn IS NULL AND c.binned_at IS NULL
ORDER BY c.no

-- name: binned
SELECT count(*) FROM conversation WHERE deleting = 1

-- name: dictionaries
SELECT count(*) FROM dictionary
