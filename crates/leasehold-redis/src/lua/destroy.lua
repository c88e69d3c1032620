-- DESTROY: ends a generation (rule N5): waiters are rejected, watchers are done, grants are gone. The
-- next one begins with no capacity and the same line of fencing tokens. The end is remembered for ten
-- minutes. Idempotent for a named generation.
--
-- ARGV  1 generation (-1: the current one)   2 reason
-- Reply {0, next generation}   {1} it had ended before
local asked_gen = peel('>d', ARGV[1])
if asked_gen >= 0 and asked_gen < gen then return {1} end

-- include many.lua
-- include reject.lua
lock.reject_all(2, ARGV[2])
if lock.holder then
  local token, record = lock.sole, lock.holder
  lock.end_grant(token, record)
  -- A claim that its waiter has not seen yet: to its caller it is a waiter still.
  if string.byte(record) == lock.STATE_CLAIMED then lock.reject(token, record, 2, ARGV[2]) end
end
if lock.plural > 0 then
  local members = call('ZRANGE', lock.H, 0, -1)
  for start = 1, #members, lock.CHUNK do
    lock.fetch({unpack(members, start, math.min(start + lock.CHUNK - 1, #members))})
  end
  for _, member in ipairs(members) do
    local record = lock.ends[member] ~= false and sub(member, 1, 2) == 't:' and lock.get(member)
    if record and string.byte(record) <= lock.STATE_CLAIMED then
      local token = sub(member, 3)
      lock.end_grant(token, record)
      if string.byte(record) == lock.STATE_CLAIMED then lock.reject(token, record, 2, ARGV[2]) end
    end
  end
end
for what = 1, 4 do
  if lock.waits[what] > 0 then lock.complete(what) end
end
lock.used, lock.plural, lock.endless, capacity = 0, 0, 0, 0
gen = (asked_gen >= 0 and asked_gen or gen) + 1
remembered = now + 600000000
lock.finish(true)
return {0, gen}
