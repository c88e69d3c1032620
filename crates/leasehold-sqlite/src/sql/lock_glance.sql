-- ?1 lock -> next expiry, client of the head waiter (NULL: nobody is queued).
SELECT next_expiry,
    (SELECT client FROM waiters WHERE lock = ?1 ORDER BY seq LIMIT 1)
FROM locks WHERE id = ?1
