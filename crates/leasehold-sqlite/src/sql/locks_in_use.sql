-- ?1 namespace, NULL: all -> every lock that is held, waited for or watched (rule N4).
SELECT id, namespace, kind, name, capacity, used, generation, next_expiry FROM locks
WHERE (used > 0 OR queued > 0 OR watchers > 0) AND (?1 IS NULL OR namespace = ?1)
