-- ?1 lock -> the lock's row, or nothing.
SELECT id, key, capacity, used, queued, watchers, seq, fence, generation, next_expiry
FROM locks WHERE id = ?1
