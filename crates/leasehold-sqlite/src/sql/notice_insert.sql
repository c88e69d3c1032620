-- ?1 client, ?2 key, ?3 token, ?4 kind, ?5 reason. A client that is gone is told nothing.
INSERT INTO notices (client, lock, token, kind, reason)
SELECT id, ?2, ?3, ?4, ?5 FROM clients WHERE id = ?1
