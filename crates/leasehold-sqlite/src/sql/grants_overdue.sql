-- ?1 lock, ?2 now -> token, weight, client, claimed of each grant that is over (rules T3, L1).
DELETE FROM grants WHERE lock = ?1 AND expires <= ?2 RETURNING token, weight, client, claimed
