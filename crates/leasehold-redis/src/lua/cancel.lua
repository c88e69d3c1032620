-- CANCEL: rejects every waiter that is queued now, from every client, in queue order (rule W5).
-- Holders and watchers stay. Who was rejected is remembered until it was told, or for 30 s.
--
-- ARGV  1 reason
-- Reply {0, how many}
-- Calls 5 and a few for each 500 waiters.
if many == 0 then return {0, 0} end

-- include many.lua
-- include reject.lua
local count = lock.reject_all(1, ARGV[1])
lock.finish(true)
return {0, count}
