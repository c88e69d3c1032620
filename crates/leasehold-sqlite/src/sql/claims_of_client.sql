-- ?1 client -> key of the lock and token of each claim that waits for its confirmation (rule L10).
SELECT l.key, g.token FROM grants AS g JOIN locks AS l ON l.id = g.lock
WHERE g.client = ?1 AND g.claimed = 1
