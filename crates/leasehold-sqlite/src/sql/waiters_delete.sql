-- ?1 lock -> token and client of each: all waiters of the lock leave.
DELETE FROM waiters WHERE lock = ?1 RETURNING token, client
