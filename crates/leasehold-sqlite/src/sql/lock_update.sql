-- ?1 lock, ?2 capacity, ?3 used, ?4 queued, ?5 watchers, ?6 seq, ?7 fence, ?8 generation,
-- ?9 next expiry, ?10 now.
UPDATE locks SET capacity = ?2, used = ?3, queued = ?4, watchers = ?5, seq = ?6, fence = ?7,
    generation = ?8, next_expiry = ?9, touched = ?10
WHERE id = ?1
