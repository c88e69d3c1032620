-- -> the largest lock id; NULL: no lock.
SELECT MAX(id) FROM locks
