-- RENEW: expiry = max(expiry, now + the grant's TTL); never shortens, revives nothing (rules L2, T4).
-- Works in a server that is out of memory.
--
-- ARGV  1 token
-- Reply {0, µs left (-1: no TTL)}   1 the grant is gone
-- Calls sole holder of an uncontended lock 3, among others 5.
local token = ARGV[1]
-- include write.lua
if many == 0 then
  local at = HEAD_LEN
  if toklen == 0 or sub(raw, at + 1, at + toklen) ~= token then return 1 end
  local ending, ttl = peel('>d', raw, at + toklen + 51), peel('>I4', raw, at + toklen + 31)
  if ending > 0 and ending <= now then return 1 end
  if ttl == 0 then return {0, ending > 0 and ending - now or -1} end
  local later = math.max(ending, now + ttl * 1000)
  if string.byte(raw, at + toklen + 1) == 1 and ending > 0 then
    local value = sub(raw, 1, at + toklen + 50) .. pack('>d', later) .. sub(raw, at + toklen + 59)
    put(value, math.max(later, fence, remembered), true)
    return {0, later - now}
  end
end

-- include many.lua
local record = lock.grant_of(token)
if not record then
  lock.finish(true)
  return 1
end
local ttl, _, _, ending = peel('>I4ddd', record, 31)
if ttl > 0 and ending > 0 then
  ending = math.max(ending, now + ttl * 1000)
  record = lock.with_end(record, string.byte(record), ending)
  lock.replace(token, record)
end
lock.finish(true)
return {0, ending > 0 and ending - now or -1}
