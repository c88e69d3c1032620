-- ?1 lock -> its holders in the order of their grants.
SELECT token, host, pid, label, whole, weight, fence, since, expires, by_token, claimed,
    client
FROM grants WHERE lock = ?1 ORDER BY fence
