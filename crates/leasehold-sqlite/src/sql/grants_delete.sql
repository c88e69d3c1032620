-- ?1 lock -> token, client, claimed of each: all grants of the lock end (rule N5).
DELETE FROM grants WHERE lock = ?1 RETURNING token, client, claimed
