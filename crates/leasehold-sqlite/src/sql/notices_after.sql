-- ?1 client, ?2 id, ?3 limit -> id, key and token of the notices after that id.
SELECT id, lock, token FROM notices WHERE client = ?1 AND id > ?2 ORDER BY id LIMIT ?3
