-- ?1 lock, ?2 token, ?3 attempt, ?4 client, ?5 by token, ?6 claimed, ?7 weight, ?8 whole, ?9 shared,
-- ?10 fence, ?11 ttl, ?12 since, ?13 expires, ?14 host, ?15 pid, ?16 label.
INSERT INTO grants (lock, token, attempt, client, by_token, claimed, weight, whole, shared, fence,
    ttl, since, expires, host, pid, label)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
