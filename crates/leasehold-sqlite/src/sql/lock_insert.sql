-- ?1 key, ?2 namespace, ?3 kind, ?4 name, ?5 capacity, ?6 used, ?7 queued, ?8 watchers, ?9 seq,
-- ?10 fence, ?11 generation, ?12 next expiry, ?13 now.
INSERT INTO locks (key, namespace, kind, name, capacity, used, queued, watchers, seq, fence,
    generation, next_expiry, touched)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
