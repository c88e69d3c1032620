-- ?1 lock, ?2 token -> seq and attempt of the waiter, or nothing.
SELECT seq, attempt FROM waiters WHERE lock = ?1 AND token = ?2
