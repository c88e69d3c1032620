-- ?1 client -> the lock of each waiter that left with its client (rule L4).
DELETE FROM waiters WHERE client = ?1 RETURNING lock
