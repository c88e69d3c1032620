-- -> the store-wide floor of fencing tokens (rule L8).
SELECT fence_floor FROM store
