-- ?1 lock, ?2 now -> token, weight, client, claimed of the grant of a lock with one permit, if it is
-- over (rules T3, L1).
DELETE FROM grants WHERE lock = ?1 AND expires <= ?2 RETURNING token, weight, client, claimed
