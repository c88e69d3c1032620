-- ?1 lock, ?2 seq, ?3 limit -> the waiters after that place in queue order, each with the last beat
-- of its client (rules Q2, L4).
SELECT w.seq, w.token, w.attempt, w.client, w.by_token, w.weight, w.whole, w.ttl, w.host, w.pid,
    w.label, c.beat
FROM waiters AS w LEFT JOIN clients AS c ON c.id = w.client
WHERE w.lock = ?1 AND w.seq > ?2 ORDER BY w.seq LIMIT ?3
