-- ?1 client -> lock and weight of each grant that ends with its client: those bound to it, and
-- claims, which nobody is left to confirm (rules T8, L10).
DELETE FROM grants WHERE client = ?1 AND (by_token = 0 OR claimed = 1) RETURNING lock, weight
