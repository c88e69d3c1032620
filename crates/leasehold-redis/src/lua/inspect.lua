-- INSPECT: who holds and who waits, in one step (rule N4). It costs what it answers.
--
-- Reply {0, capacity, used, generation, holders, waiters}   {1} nobody uses the lock
--   a holder: token, who, flags, weight, µs held, fence, µs left (-1: no TTL), claimed
--   a waiter: token, who, flags, weight, µs waited
-- Calls 2, and with others 4 and one for each 500 of them.

-- include many.lua
lock.finish(true)
if capacity == 0 or not lock.is_in_use() then return {1} end

local function each(members, visit)
  for start = 1, #members, lock.CHUNK do
    local last = math.min(start + lock.CHUNK - 1, #members)
    local records = call('HMGET', lock.T, unpack(members, start, last))
    for index = start, last do
      local record = records[index - start + 1]
      if record then visit(sub(members[index], 3), record) end
    end
  end
end

local holders, waiters = {}, {}
local function add(list_of, token, record)
  local at = #list_of
  list_of[at + 1], list_of[at + 2] = token, sub(record, lock.RECORD_LEN + 1)
  list_of[at + 3], list_of[at + 4] = string.byte(record, 2), peel('>I4', record, 27)
  list_of[at + 5] = math.max(0, now - peel('>d', record, 43))
end
local function add_holder(token, record)
  if string.byte(record) > lock.STATE_CLAIMED or not lock.is_live(record) then return end
  add(holders, token, record)
  local at, ending = #holders, peel('>d', record, 51)
  holders[at + 1], holders[at + 2] = peel('>d', record, 35), ending > 0 and ending - now or -1
  holders[at + 3] = string.byte(record) == lock.STATE_CLAIMED and 1 or 0
end
if lock.holder then add_holder(lock.sole, lock.holder) end
if lock.plural > 0 then
  local members = {}
  for _, member in ipairs(call('ZRANGE', lock.H, 0, -1)) do
    if sub(member, 1, 2) == 't:' then members[#members + 1] = member end
  end
  each(members, add_holder)
end
if lock.queued > 0 then
  each(call('ZRANGEBYSCORE', lock.Q, 1, '+inf'), function(token, record) add(waiters, token, record) end)
end
return {0, capacity, lock.used, gen, holders, waiters}
