-- ?1 lock, ?2 key, ?3 kind, ?4 reason: a notice for every waiter, in queue order (rule W5).
INSERT INTO notices (client, lock, token, kind, reason)
SELECT client, ?2, token, ?3, ?4 FROM waiters WHERE lock = ?1 ORDER BY seq
