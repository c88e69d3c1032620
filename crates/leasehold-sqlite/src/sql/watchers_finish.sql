-- ?1 key, ?2 what is true now, with all before it (rule U1) -> id and client of each that is done.
UPDATE watchers SET done = 1 WHERE lock = ?1 AND what <= ?2 AND done = 0 RETURNING token, client
