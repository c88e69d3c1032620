-- ?1 lock -> the earliest expiry at a lock with several permits; NULL: none expires.
SELECT MIN(expires) FROM grants WHERE lock = ?1 AND shared = 1 AND expires IS NOT NULL
