-- ?1 client, ?2 limit -> the registered clients after that id.
SELECT id FROM clients WHERE id > ?1 ORDER BY id LIMIT ?2
