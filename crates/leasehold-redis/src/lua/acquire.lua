-- ACQUIRE: grants, queues or refuses (rules Q1-Q5, L6-L8, N2, N5), in the order of the contract:
-- stale · over, overtaken · known (replay, TokenInUse) · destroyed · config mismatch · too heavy · granted ·
-- busy · queue full · queued.
--
-- ARGV  1 token   2 request, which lies as the record that is made of it: state (1), flags, attempt,
--         client, wake, weight (0: whole), TTL in ms (0: none) · capacity, claim in ms, generation
--         (-1: none), queue limit, in the place of what this script decides · not_after (-1: none),
--         stamp: when it was sent, in the server's time as the client knows it (0: it does not), who
--         asks, a string that no script looks into   3 the TTL and two seconds, in ms
-- Reply GRANT (head.lua)                                                       granted
--       {1, ahead, µs held (-1: no holder), who holds, generation, capacity, µs to the next expiry
--        (-1: none), times it, pushes work}                                  queued
--       {2, ahead, µs held, who holds}                                       busy
--       {3, why, number}   1 token in use   2 another capacity   3 too heavy for the capacity
--                          4 destroyed   5 stale   6 queue full
--       {4}                                                                  over before (L7)
--       {5, stamp}   not later than the stamp of one that is over: a copy, for all that is known (L7)
-- Calls granted 3, busy 2, first in the queue 9, replay of a holder 2.
local token, request = ARGV[1], ARGV[2]
local flags, attempt, weight, ttl, claimed_capacity, term, asked_gen, limit, not_after, stamp =
  peel('>xBc8xxxxxxxxxxxxxxxxI4I4I4I4dddd', request)
local waits_on, is_whole, is_registered = flags % 2 == 1, flags % 8 >= 4, flags % 16 >= 8
if not_after >= 0 and not_after <= now then return {3, 5, 0} end

if many == 0 then
  local is_free = toklen == 0
  if not is_free then
    local ending = peel('>d', raw, HEAD_LEN + toklen + 51)
    is_free = ending > 0 and ending <= now
    -- So that it is remembered by the long way.
    if is_free and peel('>d', raw, HEAD_LEN + toklen + 59) > now then is_free = nil end
  end
  if is_free then
    -- Nobody has it. That it was here before, is looked for in what is over.
    if copies_end > now then
      if attempt == ended then return {4} end
      if stamp > 0 and stamp <= newest then return {5, newest} end
    end
    if asked_gen >= 0 and asked_gen < gen then return {3, 4, 0} end
    if asked_gen > gen then gen = asked_gen end
    capacity = claimed_capacity
    if is_whole then weight = capacity end
    if weight > capacity then return {3, 3, capacity} end
    fence = now > fence and now or fence + 1
    -- No function and no printed number where none is needed: either costs as much as all the rest.
    local lasts = ttl * 1000
    local first = sub(request, 1, 34)
    if is_whole then first = sub(first, 1, 26) .. pack('>I4', weight) .. sub(first, 31) end
    local value = pack('>BBBBBI4dddddc8', 76, LAYOUT, 0, denied, #token, capacity, fence, gen,
      remembered, copies_end, newest, ended) .. token .. first
      .. pack('>ddd', fence, now, ttl > 0 and now + lasts or 0) .. sub(request, 59)
    if ttl == 0 then
      call('SET', KEYS[1], value)
      return pack(GRANT, fence, -1, gen, 0, capacity)
    end
    local ending, px = now + lasts, ARGV[3]
    if fence > ending or remembered > ending or copies_end > ending then
      px = math.ceil((math.max(fence, remembered, copies_end) - now + RETAIN) / 1000)
    end
    call('SET', KEYS[1], value, 'PX', px)
    return pack(GRANT, fence, lasts, gen, ttl, capacity)
  end
  if is_free == false and not waits_on and (asked_gen < 0 or asked_gen >= gen)
    and (is_registered or claimed_capacity == capacity)
    and sub(raw, HEAD_LEN + 1, HEAD_LEN + toklen) ~= token then
    local at = HEAD_LEN + toklen
    local used = peel('>I4', raw, at + 27)
    local asked = is_whole and capacity or weight
    if asked <= capacity and asked > capacity - used then
      return {2, 0, math.max(0, now - peel('>d', raw, at + 43)), sub(raw, at + 75)}
    end
  end
end

-- The short way to the end of a queue, behind a sole holder: nothing has run out, and nobody is pushed.
if many == 1 and waits_on and toklen > 0 then
  repeat
    local at = HEAD_LEN + 76 + toklen
    local used, plural, queued, listed, endless, unlocked, any, readable, destroyed, arrivals, first, soon, told,
      keep = peel('>I4I4I4I4I4I4I4I4I4ddddd', raw, HEAD_LEN + 1)
    local asked = is_whole and capacity or weight
    if queued == 0 or queued >= limit or plural > 0 or unlocked + any + readable > 0 or asked > capacity
      or not is_registered and claimed_capacity ~= capacity or asked_gen >= 0 and asked_gen < gen
      or sub(raw, HEAD_LEN + 77, at) == token then break end
    -- L7: it is not known, and is no copy of what is over.
    if copies_end > now and (attempt == ended or stamp > 0 and stamp <= newest) then break end
    local since, ending = peel('>dd', raw, at + 43)
    local ends = soon
    if ending > 0 and (soon == 0 or ending < soon) then ends = ending end
    if ends > 0 and (ends <= now or ends < told) then break end
    if keep < now + 10000000 or keep < ending or keep < fence then break end
    local field = 't:' .. token
    local known = call('HMGET', KEYS[2], field, 'x:' .. attempt, 'l')
    local last = known[3] and peel('>d', known[3]) or 0
    if known[1] or known[2] or last > now or now - last > 10000000 then break end
    local moment = pack('>d', now)
    local record = '\3' .. sub(request, 2, 26) .. pack('>I4I4ddd', asked, ttl, arrivals + 1, now, term)
      .. sub(request, 59)
    call('HSET', KEYS[2], field, record, 'b:' .. token, moment, 'l', moment)
    call('ZADD', KEYS[4], arrivals + 1, field)
    local value = sub(raw, 1, HEAD_LEN)
      .. pack('>I4I4I4I4I4I4I4I4I4ddddd', used, 0, queued + 1, listed, endless, 0, 0, 0, destroyed, arrivals + 1,
        first, soon, told, keep) .. sub(raw, HEAD_LEN + 77)
    call('SET', KEYS[1], value, 'KEEPTTL')
    return {1, queued, math.max(0, now - since), sub(raw, at + 75), gen, capacity, ends > 0 and ends - now or -1,
      0, 1 - denied}
  until true
end

-- The record that is kept: of a grant, with its fence; of a waiter, with its place.
local function record_of(state, number, ending)
  return string.char(state) .. sub(request, 2, 26)
    .. pack('>I4I4ddd', weight, ttl, number, now, ending) .. sub(request, 59)
end

local function new_grant()
  fence = math.max(fence + 1, now)
  return record_of(1, fence, ttl > 0 and now + ttl * 1000 or 0)
end

-- include many.lua
local function queued_reply(ahead, at, times)
  local _, held, who = lock.obstacle(ahead)
  -- Nothing was freed: the head does not fit, as before.
  lock.finish(false, true)
  -- The lock of a waiter that was rejected may have no capacity any more.
  return {1, ahead, held, who, gen, math.max(capacity, 1), at, times, 1 - denied}
end

-- L7: what is known of the token.
local function replay()
  if many == 1 then lock.fetch({'t:' .. token, 'x:' .. attempt, 'l', 'z'}) end
  if lock.is_tombstone(attempt) then return {4} end
  local record = lock.grant_of(token)
  if not record and (lock.queued > 0 or lock.listed > 0) then record = lock.get('t:' .. token) or nil end
  if record and string.byte(record) <= lock.STATE_CLAIMED and not lock.is_live(record) then record = nil end
  if not record then
    if stamp <= 0 or stamp > newest or copies_end <= now then return end
    lock.finish(false)
    return {5, newest}
  end
  local state = string.byte(record)
  if sub(record, 3, 10) ~= attempt then return {3, 1, 0} end
  -- A later copy may come later.
  local until_then, last_stamp = peel('>dd', record, 59)
  record = sub(record, 1, 58) .. pack('>dd', math.max(until_then, not_after), math.max(last_stamp, stamp))
    .. sub(record, lock.RECORD_LEN + 1)
  if state <= lock.STATE_CLAIMED then
    if state == lock.STATE_CLAIMED then
      -- Whoever asks again takes the answer for the grant: so it confirms (L10).
      -- Its TTL may be another by now.
      local kept, old = peel('>I4', record, 31), peel('>d', record, 51)
      record = lock.with_end(record, lock.STATE_GRANTED, kept > 0 and math.max(old, now + kept * 1000) or 0)
    end
    lock.replace(token, record)
    local reply = lock.as_grant(record)
    lock.finish(false)
    return reply
  end
  if state == lock.STATE_REJECTED then
    -- It will look, and be told.
    lock.fields['t:' .. token] = record
    return queued_reply(0, 0, 1)
  end
  -- Whoever asks last has the place and is woken.
  record = sub(record, 1, 10) .. sub(request, 11, 26) .. sub(record, 27)
  lock.fields['t:' .. token] = record
  lock.beat(token)
  return queued_reply(lock.ahead_of(token), lock.waiting(peel('>d', record, 35) == lock.first))
end

local function refuse(why, number)
  lock.finish(false)
  return {3, why, number}
end

local known = replay()
if known then return known end
if asked_gen >= 0 and asked_gen < gen then return refuse(4, 0) end
if lock.is_in_use() and capacity > 0 then
  if not is_registered and claimed_capacity ~= capacity then return refuse(2, capacity) end
else
  capacity = claimed_capacity
  gen = math.max(gen, asked_gen)
end
if is_whole then weight = capacity end
if weight > capacity then return refuse(3, capacity) end
if lock.queued == 0 and weight <= capacity - lock.used then
  local record = new_grant()
  lock.place(token, record, peel('>d', record, 51))
  lock.finish(false)
  return lock.as_grant(record)
end
if not waits_on then
  local reply = {2, lock.obstacle(lock.queued)}
  lock.finish(false)
  return reply
end
if lock.queued >= limit then return refuse(6, limit) end
local ahead = lock.queued
lock.arrivals = lock.arrivals + 1
lock.queued = lock.queued + 1
lock.fields['t:' .. token], lock.places['t:' .. token] = record_of(lock.STATE_WAITING, lock.arrivals, term), lock.arrivals
lock.beat(token)
if ahead == 0 then lock.first, lock.told_in_reply = lock.arrivals, true end
return queued_reply(ahead, lock.waiting(ahead == 0))
