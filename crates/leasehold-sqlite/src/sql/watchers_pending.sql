-- ?1 key, ?2 limit -> the clients of watchers that are not done.
SELECT DISTINCT client FROM watchers WHERE lock = ?1 AND done = 0 LIMIT ?2
