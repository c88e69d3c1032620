-- ?1 client, ?2 key, ?3 token, ?4 kind, ?5 reason.
INSERT INTO notices (client, lock, token, kind, reason) VALUES (?1, ?2, ?3, ?4, ?5)
