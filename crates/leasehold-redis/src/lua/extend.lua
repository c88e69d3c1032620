-- EXTEND: expiry = now + TTL, or none, and that TTL is the one of later renewals; may shorten, revives
-- nothing (rules T4, L2). A claim counts as a grant and is confirmed by it no more than before. Works
-- in a server that is out of memory.
--
-- ARGV  1 token   2 TTL in ms (0: none)
-- Reply {0} held   {1} gone   {2} bound to its token, which needs a TTL (T8); nothing changed
-- Calls sole holder 3, among others 5.
local token, ttl = ARGV[1], tonumber(ARGV[2])

-- include many.lua
local record = lock.grant_of(token)
if not record then
  lock.finish(true)
  return {1}
end
if ttl == 0 and string.byte(record, 2) % 4 >= 2 then
  lock.finish(true)
  return {2}
end
record = sub(record, 1, 30) .. pack('>I4', ttl) .. sub(record, 35)
lock.replace(token, lock.with_end(record, string.byte(record), ttl > 0 and now + ttl * 1000 or 0))
lock.finish(true)
return {0}
