-- ?1 client, ?2 beat (rule L4).
UPDATE clients SET beat = ?2 WHERE id = ?1
