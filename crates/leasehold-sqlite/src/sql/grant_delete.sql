-- ?1 lock, ?2 token -> weight, client, claimed of the grant that ended, or nothing (rule T6).
DELETE FROM grants WHERE lock = ?1 AND token = ?2 RETURNING weight, client, claimed
