-- ?1 lock, ?2 seq, ?3 limit -> how many wait before that place, counted up to the limit (rule Q6).
SELECT COUNT(*) FROM (SELECT 1 FROM waiters WHERE lock = ?1 AND seq < ?2 LIMIT ?3)
