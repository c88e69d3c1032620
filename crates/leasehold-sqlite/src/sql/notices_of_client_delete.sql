-- ?1 client: nobody is left to be told.
DELETE FROM notices WHERE client = ?1
