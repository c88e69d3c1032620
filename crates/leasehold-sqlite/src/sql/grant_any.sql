-- ?1 lock -> one of its holders: host, pid, label, since, weight.
SELECT host, pid, label, since, weight FROM grants WHERE lock = ?1 LIMIT 1
