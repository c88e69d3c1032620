-- ?1 lock -> the earliest expiry; NULL: none expires.
SELECT MIN(expires) FROM grants WHERE lock = ?1 AND expires IS NOT NULL
