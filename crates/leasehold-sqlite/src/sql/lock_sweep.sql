-- ?1 and ?2: first and last lock of the window, ?3 a time -> the fence of each lock that was
-- forgotten, idle since before that time. Its caller raises the floor (rule L8).
DELETE FROM locks
WHERE id BETWEEN ?1 AND ?2 AND used = 0 AND queued = 0 AND watchers = 0 AND touched < ?3
RETURNING fence
