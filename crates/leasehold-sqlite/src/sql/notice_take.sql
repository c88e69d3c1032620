-- ?1 client, ?2 key, ?3 token -> kind and reason: told once, then forgotten.
DELETE FROM notices WHERE client = ?1 AND lock = ?2 AND token = ?3 RETURNING kind, reason
