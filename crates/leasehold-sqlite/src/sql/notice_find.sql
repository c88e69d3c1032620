-- ?1 client, ?2 key, ?3 token -> 1 for each rejection that was not told yet, or nothing.
SELECT 1 FROM notices WHERE client = ?1 AND lock = ?2 AND token = ?3 AND kind > 0
