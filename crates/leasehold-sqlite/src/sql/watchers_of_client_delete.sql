-- ?1 client -> the lock's id and whether it was done, of each watcher that left with its client.
DELETE FROM watchers WHERE client = ?1
RETURNING (SELECT id FROM locks WHERE key = watchers.lock), done
