-- ?1 client -> lock and weight of each grant that is bound to the client and ends with it (rules
-- N7, T8). A claim that is bound to its token is back when the claim is over (rule L10).
DELETE FROM grants WHERE client = ?1 AND by_token = 0 RETURNING lock, weight
