-- COUNTS: how many permits there are and are held, how many wait.
--
-- Reply {0, capacity, used, queued, one grant holds all, generation}   {1} nobody uses the lock
-- Calls 2.

-- include many.lua
lock.finish(true)
if capacity == 0 or not lock.is_in_use() then return {1} end
local is_whole = lock.holder and string.byte(lock.holder, 2) % 8 >= 4 and 1 or 0
return {0, capacity, lock.used, lock.queued, is_whole, gen}
