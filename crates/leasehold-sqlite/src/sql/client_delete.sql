-- ?1 client.
DELETE FROM clients WHERE id = ?1
