-- ?1 lock, ?2 seq, ?3 token, ?4 attempt, ?5 client, ?6 by token, ?7 weight, ?8 whole, ?9 ttl,
-- ?10 since, ?11 host, ?12 pid, ?13 label.
INSERT INTO waiters (lock, seq, token, attempt, client, by_token, weight, whole, ttl, since, host,
    pid, label)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
