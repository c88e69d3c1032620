-- ?1 key, ?2 token -> when the grant expires (rule T4), or nothing.
SELECT g.expires FROM locks AS l JOIN grants AS g ON g.lock = l.id
WHERE l.key = ?1 AND g.token = ?2
