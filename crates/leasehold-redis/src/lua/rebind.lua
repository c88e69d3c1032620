-- REBIND: binds a grant to the client that asks or to its token and, with a TTL, starts that TTL now
-- (rules T8, T9). Works in a server that is out of memory.
--
-- ARGV  1 token   2 flags, client, TTL in ms (0: as it is)
-- Reply GRANT (head.lua)
--       {1} gone   {2} to be bound to its token it needs a TTL; nothing changed
-- Calls sole holder 3, among others 5.
local token = ARGV[1]
local flags, client, ttl = peel('>Bc8I4', ARGV[2])

-- include many.lua
local record = lock.grant_of(token)
if not record then
  lock.finish(true)
  return {1}
end
local old_ttl, _, _, ending = peel('>I4ddd', record, 31)
if flags % 4 >= 2 and ttl == 0 and old_ttl == 0 then
  lock.finish(true)
  return {2}
end
local old_flags = string.byte(record, 2)
local kept = old_flags - (old_flags % 4 >= 2 and 2 or 0)
if ttl == 0 then ttl = old_ttl else ending = now + ttl * 1000 end
record = sub(record, 1, 1) .. string.char(kept + flags) .. sub(record, 3, 10) .. client
  .. sub(record, 19, 30) .. pack('>I4', ttl) .. sub(record, 35)
record = lock.with_end(record, string.byte(record), ending)
lock.replace(token, record)
lock.finish(true)
return lock.as_grant(record)
