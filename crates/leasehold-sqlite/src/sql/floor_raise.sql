-- ?1 fence: no lock made from now on is granted at or below it (rule L8).
UPDATE store SET fence_floor = MAX(fence_floor, ?1)
