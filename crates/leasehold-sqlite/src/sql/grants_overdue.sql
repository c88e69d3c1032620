-- ?1 lock, ?2 now -> token, weight, client, claimed of each grant of a lock with several permits
-- that is over (rules T3, L1).
DELETE FROM grants WHERE lock = ?1 AND shared = 1 AND expires <= ?2
RETURNING token, weight, client, claimed
