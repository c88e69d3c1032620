-- ?1 lock, ?2 token -> seq and client of the waiter that left, or nothing (rule Q4).
DELETE FROM waiters WHERE lock = ?1 AND token = ?2 RETURNING seq, client
