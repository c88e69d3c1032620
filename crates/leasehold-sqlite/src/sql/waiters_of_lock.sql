-- ?1 lock -> its waiters in queue order.
SELECT token, host, pid, label, whole, weight, since FROM waiters WHERE lock = ?1 ORDER BY seq
