-- ?1 client, ?2 pid, ?3 beat. Its liveness lock is held before this is run.
INSERT INTO clients (id, pid, beat) VALUES (?1, ?2, ?3)
