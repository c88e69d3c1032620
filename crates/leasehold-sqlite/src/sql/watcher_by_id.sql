-- ?1 key, ?2 id -> whether the watcher is done, or nothing.
SELECT done FROM watchers WHERE lock = ?1 AND token = ?2
