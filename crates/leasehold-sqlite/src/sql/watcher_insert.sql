-- ?1 key, ?2 id, ?3 client, ?4 what.
INSERT INTO watchers (lock, token, client, what, done) VALUES (?1, ?2, ?3, ?4, 0)
