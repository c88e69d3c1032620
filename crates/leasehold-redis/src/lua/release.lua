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

-- The short way of a hand-over by the sole holder (rules Q2, Q3): the head lives and fits, and behind it is
-- nobody, or somebody who lives and does not fit. Nothing else has happened meanwhile.
if many == 1 and copies_until <= now and toklen > 0
  and sub(raw, HEAD_LEN + 77, HEAD_LEN + 76 + toklen) == token then
  repeat
    local at = HEAD_LEN + 76 + toklen
    local _, plural, queued, listed, endless, unlocked, any, readable, destroyed, arrivals, _, soon, _, keep =
      peel('>I4I4I4I4I4I4I4I4I4ddddd', raw, HEAD_LEN + 1)
    local ending, limit, stamp = peel('>ddd', raw, at + 51)
    if ending <= now or soon > 0 and soon <= now or plural > 0 or unlocked + any + readable > 0 then break end
    if queued == 0 or queued == 1 and listed > 0 then break end
    local members = call('ZRANGEBYSCORE', KEYS[4], '1', '+inf', 'LIMIT', '0', '2')
    local head, behind = members[1], members[2]
    if not head or (queued > 1) ~= (behind ~= nil) then break end
    local beat = 'b:' .. sub(head, 3)
    local records = behind and call('HMGET', KEYS[2], head, beat, behind, 'b:' .. sub(behind, 3))
      or call('HMGET', KEYS[2], head, beat)
    local record, last, other = records[1], records[2], records[3]
    if not record or not last then break end
    last = peel('>d', last)
    if last > now or now - last >= 10000000 then break end
    local weight, ttl, _, _, term = peel('>I4I4ddd', record, 27)
    if weight > capacity then break end
    local first = 0
    if behind then
      if not other or not records[4] then break end
      last = peel('>d', records[4])
      if last > now or now - last >= 10000000 then break end
      local heavy
      heavy, first = peel('>I4xxxxd', other, 27)
      if heavy <= capacity - weight then break end
    end
    -- L10, as in `claim`.
    if ttl > 0 and ttl < term then term = ttl end
    local new_fence, claimed_until = math.max(fence + 1, now), now + term * 1000
    if behind and (keep < claimed_until or keep < new_fence or keep < limit) then break end
    local prefix = string.match(KEYS[1], '^[^{]*') .. 'client:'
    local channel = prefix .. string.format('%08x%08x', peel('>I4I4', record, 11))
    local pushed = redis.pcall('PUBLISH', channel, 'w ' .. string.format('%.0f', peel('>d', record, 19)))
    if type(pushed) == 'table' then break end
    denied, fence = 0, new_fence
    -- L7, as in `bury`.
    if limit > now then
      if copies_end <= now then newest = 0 end
      copies_end, newest = math.max(copies_end, limit), math.max(newest, stamp)
      ended = sub(raw, at + 3, at + 10)
    end
    local grant = sub(head, 3) .. '\2' .. sub(record, 2, 34) .. pack('>ddd', fence, now, claimed_until)
      .. sub(record, 59)
    if not behind then
      call('DEL', KEYS[2], KEYS[3], KEYS[4])
      local value = pack('>BBBBBI4dddddc8', 76, LAYOUT, 0, denied, #head - 2, capacity, fence, gen, remembered,
        copies_end, newest, ended) .. grant
      local until_then = math.max(claimed_until, fence, remembered, copies_end)
      call('SET', KEYS[1], value, 'PX', math.ceil((until_then - now + RETAIN) / 1000))
      return 0
    end
    call('ZREM', KEYS[4], head)
    call('HDEL', KEYS[2], head, beat)
    -- The new head times the next expiry.
    local told = soon > 0 and soon < claimed_until and soon or claimed_until
    channel = prefix .. string.format('%08x%08x', peel('>I4I4', other, 11))
    pushed = redis.pcall('PUBLISH', channel, string.format('t %.0f %.0f', told - now, peel('>d', other, 19)))
    if type(pushed) == 'table' then denied = 1 end
    local value = pack('>BBBBBI4dddddc8', 76, LAYOUT, 1, denied, #head - 2, capacity, fence, gen, remembered,
      copies_end, newest, ended)
      .. pack('>I4I4I4I4I4I4I4I4I4ddddd', weight, 0, queued - 1, listed, endless, 0, 0, 0, destroyed, arrivals,
        first, soon, told, keep) .. grant
    call('SET', KEYS[1], value, 'KEEPTTL')
    return 0
  until true
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
