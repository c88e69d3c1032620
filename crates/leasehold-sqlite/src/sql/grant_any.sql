-- ?1 lock -> one of its holders: host, pid, label, since, whole.
SELECT host, pid, label, since, whole FROM grants WHERE lock = ?1 LIMIT 1
