-- ?1 lock, ?2 token, ?3 client, ?4 by token, ?5 claimed, ?6 ttl, ?7 expires.
UPDATE grants SET client = ?3, by_token = ?4, claimed = ?5, ttl = ?6, expires = ?7
WHERE lock = ?1 AND token = ?2
