-- ?1 lock -> the expiry of the grant of a lock with one permit; NULL: it does not expire.
SELECT MIN(expires) FROM grants WHERE lock = ?1
