-- ?1 lock, ?2 token -> the grant, or nothing.
SELECT attempt, client, by_token, claimed, weight, fence, ttl, expires
FROM grants WHERE lock = ?1 AND token = ?2
