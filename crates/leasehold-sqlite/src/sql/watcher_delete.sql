-- ?1 key, ?2 id -> whether the forgotten watcher was done, or nothing.
DELETE FROM watchers WHERE lock = ?1 AND token = ?2 RETURNING done
