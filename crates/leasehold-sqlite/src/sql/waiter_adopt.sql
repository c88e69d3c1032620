-- ?1 lock, ?2 seq, ?3 client: a replay of the request waits through this client now (rule L7).
UPDATE waiters SET client = ?3 WHERE lock = ?1 AND seq = ?2 AND client <> ?3
