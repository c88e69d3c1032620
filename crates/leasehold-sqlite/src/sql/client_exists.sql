-- ?1 client -> 1 while it is registered, or nothing.
SELECT 1 FROM clients WHERE id = ?1
