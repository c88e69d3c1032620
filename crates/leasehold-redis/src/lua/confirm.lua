-- CONFIRM: tells a waiter what became of it and makes its claim a grant with the full TTL from now on
-- (rule L10). For a holder: expiry = max(expiry, now + TTL). For a waiter it is a beat. A rejection
-- is told once. Works in a server that is out of memory.
--
-- ARGV  1 token
-- Reply GRANT (head.lua)
--       {1, µs to the next expiry (-1: none), times it, pushes work}         still queued
--       {2, 1 cancelled | 2 destroyed, reason}                               rejected
--       {3}                                                                  unknown
-- Calls sole holder 3, or 6 once the keys are to stay longer; holder among others 5, waiter 5.
local token = ARGV[1]

-- The short way of a sole holder, after which nobody is to be granted, pushed or dropped. While others wait,
-- S keeps its expiry, which is that of the keys beside it, unless they have to stay longer.
local at = HEAD_LEN + (many == 1 and 76 or 0) + toklen
if toklen > 0 and sub(raw, at - toklen + 1, at) == token then
  local ttl, given, _, before = peel('>I4ddd', raw, at + 31)
  local ending = math.max(before, now + ttl * 1000)
  local is_calm, deadline, start = ttl > 0 and before > now, nil, sub(raw, 1, at)
  if many == 0 then
    deadline = math.max(ending, fence, remembered, copies_end)
  elseif is_calm then
    local used, _, queued, listed, _, unlocked, any, readable, destroyed, _, first, soon, told, keep =
      peel('>I4I4I4I4I4I4I4I4I4ddddd', raw, HEAD_LEN + 1)
    is_calm = queued + listed > 0 and unlocked + any + readable == 0
      and (queued == 0 or used >= capacity and first > 0)
      and (soon == 0 or soon > now and soon >= told) and ending >= told and keep >= 0
    if is_calm and keep < math.max(ending, fence) then
      -- As in `write_state`.
      keep = math.max(ending, fence) + 20000000
      local stay = math.ceil((keep - now + RETAIN) / 1000)
      call('PEXPIRE', KEYS[2], stay)
      if listed > 0 then call('PEXPIRE', KEYS[3], stay) end
      if queued + destroyed > 0 then call('PEXPIRE', KEYS[4], stay) end
      start = sub(raw, 1, HEAD_LEN + 68) .. pack('>d', keep) .. sub(raw, HEAD_LEN + 77, at)
      deadline = math.max(keep, remembered, copies_end)
    end
  end
  if is_calm then
    local value = start .. '\1' .. sub(raw, at + 2, at + 50) .. pack('>d', ending) .. sub(raw, at + 59)
    local written
    if deadline then
      written = redis.pcall('SET', KEYS[1], value, 'PX', math.ceil((deadline - now + RETAIN) / 1000))
    else
      written = redis.pcall('SET', KEYS[1], value, 'KEEPTTL')
    end
    if not written.err then return pack(GRANT, given, ending - now, gen, ttl, capacity) end
  end
end

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
