-- ?1 lock, ?2 token, ?3 limit -> token and client of the holders after that token.
SELECT token, client FROM grants WHERE lock = ?1 AND token > ?2 ORDER BY token LIMIT ?3
