-- BEAT: shows that the client of these waiters and watchers lives (rule L4), and says how each stands:
-- the net beneath lost pushes (L5). It also ticks the lock, so it is the poll at the next expiry.
-- Works in a server that is out of memory.
--
-- ARGV  n  't:TOKEN' of a waiter or 'w:ID' of a watcher
-- Reply {0, µs to the next expiry (-1: none), one of them times it, pushes work, 1 waits on | 0 look …}
-- Calls waiters 4, watchers 5.

-- The short way: nothing has run out, nobody waits for somebody silent, nobody has to be told a time.
local function short_way()
  local used, plural, queued, _, _, _, _, _, _, _, first, soon, told, keep =
    peel('>I4I4I4I4I4I4I4I4I4ddddd', raw, HEAD_LEN + 1)
  if used < capacity or soon > 0 and soon <= now then return end
  if keep ~= -1 and keep < now + 10000000 then return end
  local ends = soon
  if toklen > 0 then
    local ending = peel('>d', raw, HEAD_LEN + 76 + toklen + 51)
    if ending > 0 and ending <= now then return end
    if ending > 0 and (ends == 0 or ending < ends) then ends = ending end
  end
  local records = call('HMGET', KEYS[2], 'l', unpack(ARGV))
  local last = records[1] and peel('>d', records[1]) or 0
  if last > now or now - last > 10000000 then return end
  local at, reply, times = pack('>d', now), {0, ends > 0 and ends - now or -1, 0, 1 - denied}, false
  local changes = {'HSET', KEYS[2], 'l', at}
  for index, name in ipairs(ARGV) do
    local record = records[index + 1]
    if sub(name, 1, 2) ~= 't:' then return end
    local waits_on = record and string.byte(record) == 3
    reply[index + 4] = waits_on and 1 or 0
    if waits_on then
      changes[#changes + 1], changes[#changes + 2] = 'b:' .. sub(name, 3), at
      times = times or peel('>d', record, 35) == first
    end
  end
  if times and ends > told then return end
  reply[3] = times and 1 or 0
  if #changes > 4 and type(redis.pcall(unpack(changes))) == 'table' then return end
  return reply
end
local reply = many == 1 and short_way()
if reply then return reply end

-- include many.lua
local names = {'l', 'z'}
for index, name in ipairs(ARGV) do names[index + 2] = name end
if many == 1 then
  for start = 1, #names, lock.CHUNK do
    lock.fetch({unpack(names, start, math.min(start + lock.CHUNK - 1, #names))})
  end
end
local pulses, times = {}, false
for index, name in ipairs(ARGV) do
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
