-- BEAT: shows that the client of these waiters and watchers lives (rule L4), and says how each stands:
-- the net beneath lost pushes (L5). It also ticks the lock, so it is the poll at the next expiry.
-- Works in a server that is out of memory.
--
-- ARGV  n  'b:TOKEN' of a waiter, the field of its beat, or 'w:ID' of a watcher
-- Reply {0, µs to the next expiry (-1: none), one of them times it, pushes work, 1 waits on | 0 look …}
--       a number, to one waiter that waits on: µs to the next expiry (0: none) · 4 + times it · 2 + pushes work
-- Calls waiters 4, watchers 5.

-- Nothing has run out, and nobody waits for somebody silent: the beats are all that there is to write.
local is_calm, ends, first, told, queued = false, 0, 0, 0, 0
if many == 1 then
  local used, _, waiting, _, _, _, _, _, _, _, head, soon, known, keep =
    peel('>I4I4I4I4I4I4I4I4I4ddddd', raw, HEAD_LEN + 1)
  ends, first, told, queued = soon, head, known, waiting
  if toklen > 0 then
    local ending = peel('>d', raw, HEAD_LEN + 76 + toklen + 51)
    if ending > 0 and (ends == 0 or ending < ends) then ends = ending end
  end
  is_calm = used >= capacity and (ends == 0 or ends > now) and (keep == -1 or keep >= now + 10000000)
end

-- One waiter, as most beats have it: without a function or a list where none is needed.
if is_calm and not ARGV[2] and string.byte(ARGV[1]) == 98 then
  local last, times
  if queued == 1 then
    last, times = call('HMGET', KEYS[2], 'l')[1], true
  else
    local records = call('HMGET', KEYS[2], 'l', 't:' .. sub(ARGV[1], 3))
    last, times = records[1], records[2] and peel('>d', records[2], 35) == first
  end
  last = last and peel('>d', last) or 0
  if last <= now and now - last <= 10000000 and not (times and ends > told) then
    local at = pack('>d', now)
    local new = redis.pcall('HSET', KEYS[2], 'l', at, ARGV[1], at)
    if new == 0 then return (ends > 0 and ends - now or 0) * 4 + (times and 2 or 0) + 1 - denied end
    -- It does not wait.
    if new == 1 then call('HDEL', KEYS[2], ARGV[1]) end
  end
end

local function short_way()
  local names = {'l'}
  for index, name in ipairs(ARGV) do
    if string.byte(name) ~= 98 then return end
    names[index + 1] = 't:' .. sub(name, 3)
  end
  local records = call('HMGET', KEYS[2], unpack(names))
  local last = records[1] and peel('>d', records[1]) or 0
  if last > now or now - last > 10000000 then return end
  local at, reply, times = pack('>d', now), {0, ends > 0 and ends - now or -1, 0, 1 - denied}, false
  local changes = {'HSET', KEYS[2], 'l', at}
  for index, name in ipairs(ARGV) do
    local record = records[index + 1]
    local waits_on = record and string.byte(record) == 3
    reply[index + 4] = waits_on and 1 or 0
    if waits_on then
      changes[#changes + 1], changes[#changes + 2] = name, at
      times = times or peel('>d', record, 35) == first
    end
  end
  if times and ends > told then return end
  reply[3] = times and 1 or 0
  if #changes > 4 and type(redis.pcall(unpack(changes))) == 'table' then return end
  return reply
end
local reply = is_calm and short_way()
if reply then return reply end

-- include many.lua
local names = {'l', 'z'}
for index, name in ipairs(ARGV) do
  names[index + 2] = string.byte(name) == 98 and 't:' .. sub(name, 3) or name
end
if many == 1 then
  for start = 1, #names, lock.CHUNK do
    lock.fetch({unpack(names, start, math.min(start + lock.CHUNK - 1, #names))})
  end
end
local pulses, times = {}, false
for index = 1, #ARGV do
  local name = names[index + 2]
  local record = lock.get(name)
  local is_watcher = sub(name, 1, 2) == 'w:'
  local state = record and string.byte(record)
  pulses[index] = 0
  if is_watcher and state == 0 then
    pulses[index] = 1
    lock.relist(name, now + lock.WATCH)
    if string.byte(record, 2) < 4 then times = true end
  elseif not is_watcher and state == lock.STATE_WAITING then
    pulses[index] = 1
    lock.beat(sub(name, 3))
    if peel('>d', record, 35) == lock.first then times = true end
  end
end
local at, timing = lock.waiting(times)
lock.finish(true)
return {0, at, timing, 1 - denied, unpack(pulses)}
