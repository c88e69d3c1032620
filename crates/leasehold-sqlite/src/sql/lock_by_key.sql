-- ?1 key -> the lock's row, or nothing.
SELECT id, key, capacity, used, queued, watchers, seq, fence, generation, next_expiry
FROM locks WHERE key = ?1
