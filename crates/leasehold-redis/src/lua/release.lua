-- RELEASE: gives a grant back or takes a waiter out, whoever's it is, and grants on in the same step
-- (rules Q3, Q4, T6). What is not known, is left alone. Until the acquisition's `not_after` it leaves
-- a tombstone, so that a copy of it that is still on its way comes to nothing (L7). Works in a server
-- that is out of memory.
--
-- ARGV  1 token   2 the client that asks   3 (or absent) attempt and until when copies may come
-- Reply 0 a holder   {1, ahead, µs held (-1: no holder), who holds} a waiter   2 unknown
-- Calls last holder of an uncontended lock 3, hand-over to a waiter 9.
local token, copies = ARGV[1], ARGV[3]
local attempt, copies_until = nil, 0
if copies then attempt, copies_until = peel('>c8d', copies) end
if many == 0 and copies_until <= now then
  local at = HEAD_LEN + toklen
  if toklen == 0 or sub(raw, HEAD_LEN + 1, at) ~= token then return 2 end
  local ending, limit, stamp = peel('>ddd', raw, at + 51)
  if ending > 0 and ending <= now then return 2 end
  -- L7, as in `bury`.
  local kept = sub(raw, 34, HEAD_LEN)
  if limit > now then
    if copies_end <= now then copies_end, newest = 0, 0 end
    if limit >= copies_end and stamp >= newest then
      copies_end, kept = limit, sub(raw, at + 59, at + 74) .. sub(raw, at + 3, at + 10)
    else
      copies_end = math.max(limit, copies_end)
      kept = pack('>dd', copies_end, math.max(stamp, newest)) .. sub(raw, at + 3, at + 10)
    end
  end
  local value = sub(raw, 1, 4) .. '\0' .. sub(raw, 6, 33) .. kept
  -- A number in its place would be printed, which costs as much as the rest.
  local last, px = now + 500000, '2500'
  if fence > last or remembered > last or copies_end > last then
    last = math.max(copies_end, fence, remembered)
    px = last <= now + 4500000 and '6500' or math.ceil((last - now + RETAIN) / 1000)
  end
  if redis.pcall('SET', KEYS[1], value, 'PX', px).err then
    -- See `put`.
    call('PERSIST', KEYS[1])
    call('SET', KEYS[1], value, 'PX', px)
  end
  return 0
end

-- include many.lua
local reply = 2
local record = lock.grant_of(token)
if record then
  lock.end_grant(token, record)
  if attempt then lock.bury_known(attempt, copies_until) end
  lock.finish(true)
  return 0
end
if lock.queued > 0 then lock.fetch({'t:' .. token, 'b:' .. token, 'l', 'z'}) end
record = (lock.queued > 0 or lock.listed > 0) and lock.get('t:' .. token)
local state = record and string.byte(record)
if state == lock.STATE_WAITING then
  reply = {1, lock.obstacle(lock.ahead_of(token))}
  lock.leave_queue(token)
  if peel('>d', record, 35) == lock.first then lock.first = 0 end
  local client, wake = peel('>c8d', record, 11)
  -- Somebody may still wait on it, elsewhere.
  if client ~= ARGV[2] then lock.push(client, wake, 'w') end
  lock.bury(record)
elseif state == lock.STATE_REJECTED then
  lock.fields['t:' .. token] = false
  lock.unlist('t:' .. token)
  lock.bury(record)
end
if attempt then lock.bury_known(attempt, copies_until) end
lock.finish(true)
return reply
