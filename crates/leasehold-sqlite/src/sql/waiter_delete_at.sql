-- ?1 lock, ?2 seq.
DELETE FROM waiters WHERE lock = ?1 AND seq = ?2
