-- ?1 client -> key and id of its watchers that are done.
SELECT lock, token FROM watchers WHERE client = ?1 AND done = 1
