-- CONFIRM: tells a waiter what became of it and makes its claim a grant with the full TTL from now on
-- (rule L10). For a holder: expiry = max(expiry, now + TTL). For a waiter it is a beat. A rejection
-- is told once. Works in a server that is out of memory.
--
-- ARGV  1 token
-- Reply GRANT (head.lua)
--       {1, µs to the next expiry (-1: none), times it, pushes work}         still queued
--       {2, 1 cancelled | 2 destroyed, reason}                               rejected
--       {3}                                                                  unknown
-- Calls sole holder 3, holder among others 5, waiter 5.
local token = ARGV[1]

-- include many.lua
local record = lock.grant_of(token)
if record then
  local ttl = peel('>I4', record, 31)
  local ending = ttl > 0 and math.max(peel('>d', record, 51), now + ttl * 1000) or 0
  record = lock.with_end(record, lock.STATE_GRANTED, ending)
  lock.replace(token, record)
  lock.finish(true)
  return lock.as_grant(record)
end
if lock.queued > 0 then lock.fetch({'t:' .. token, 'b:' .. token, 'l', 'z'}) end
record = (lock.queued > 0 or lock.listed > 0) and lock.get('t:' .. token)
local state = record and string.byte(record)
if state == lock.STATE_WAITING then
  lock.beat(token)
  local at, times = lock.waiting(peel('>d', record, 35) == lock.first)
  lock.finish(true)
  return {1, at, times, 1 - denied}
end
if state == lock.STATE_REJECTED then
  local why = lock.get('r:' .. string.format('%.0f', peel('>d', record, 35)))
  lock.fields['t:' .. token] = false
  lock.unlist('t:' .. token)
  lock.bury(record)
  lock.finish(true)
  if why then return {2, string.byte(why), sub(why, 2)} end
  return {3}
end
lock.finish(true)
return {3}
