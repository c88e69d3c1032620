-- REMAINING: what is left of a grant (rule T4). A waiter's is gone.
--
-- ARGV  1 token
-- Reply {0, µs left (-1: no TTL)}   {1} gone
-- Calls sole holder 2, among others 3.
local token = ARGV[1]

-- include many.lua
local record = lock.grant_of(token)
lock.finish(true)
if not record then return {1} end
local ending = peel('>d', record, 51)
return {0, ending > 0 and ending - now or -1}
