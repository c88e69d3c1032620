-- RELEASE: gives a grant back or takes a waiter out, whoever's it is, and grants on in the same step
-- (rules Q3, Q4, T6). What is not known, is left alone. Until the acquisition's `not_after` it leaves
-- a tombstone, so that a copy of it that is still on its way comes to nothing (L7). Works in a server
-- that is out of memory.
--
-- ARGV  1 token   2 the client that asks   3 (or absent) attempt and until when copies may come
-- Reply {0} a holder   {1, ahead, µs held (-1: no holder), who holds} a waiter   {2} unknown
-- Calls last holder of an uncontended lock 3, hand-over to a waiter 9.
local token, copies = ARGV[1], ARGV[3]
local attempt, copies_until = nil, 0
if copies then attempt, copies_until = peel('>c8d', copies) end
if many == 0 and copies_until <= now then
  local at = HEAD_LEN + 16 * ringn
  if toklen == 0 or sub(raw, at + 1, at + toklen) ~= token then return {2} end
  local ending, limit = peel('>dd', raw, at + toklen + 51)
  if ending > 0 and ending <= now then return {2} end
  -- Tombstones lie in order of their ends.
  local start, latest, added = HEAD_LEN + 1, 0, ''
  if ringn > 0 then
    latest = peel('>d', raw, at - 7)
    while ringn > 0 and (ringn == RING_MAX or peel('>d', raw, start + 8) <= now) do
      start, ringn = start + 16, ringn - 1
    end
  end
  if limit > now then
    latest, ringn = math.max(limit, latest), ringn + 1
    added = sub(raw, at + toklen + 3, at + toklen + 10) .. pack('>d', latest)
  end
  local value = pack('>BBBBBBI4ddd', 76, LAYOUT, 0, ringn, 0, denied, capacity, fence, gen,
    remembered) .. sub(raw, start, at) .. added
  local left = math.max(latest, fence, remembered, now) - now + RETAIN
  -- A number in its place would be printed, which costs as much as the rest.
  local px = left <= 2500000 and '2500' or left <= 6500000 and '6500' or math.ceil(left / 1000)
  if redis.pcall('SET', KEYS[1], value, 'PX', px).err then
    -- See `put`.
    call('PERSIST', KEYS[1])
    call('SET', KEYS[1], value, 'PX', px)
  end
  return {0}
end

-- include many.lua
local reply = {2}
local record = lock.grant_of(token)
if record then
  lock.end_grant(token, record)
  if attempt then lock.bury(attempt, copies_until, true) end
  lock.finish(true)
  return {0}
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
  lock.bury(sub(record, 3, 10), peel('>d', record, 59))
elseif state == lock.STATE_REJECTED then
  lock.fields['t:' .. token] = false
  lock.unlist('t:' .. token)
  lock.bury(sub(record, 3, 10), peel('>d', record, 59))
end
if attempt then lock.bury(attempt, copies_until, true) end
lock.finish(true)
return reply
