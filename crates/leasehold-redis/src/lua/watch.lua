-- WATCH: registers a watcher, or tells one that is known what became of it (rules U1, U2). One that is
-- done is told so once, even if what it waited for is false again by now. It is a beat, too.
--
-- ARGV  1 id   2 what for (1 unlocked, 2 a permit, 3 readable, 4 destroyed), client, wake,
--         generation (-1: none)
-- Reply {0} done   {1, µs to the next expiry (-1: none), times it, pushes work} waits   {2} destroyed
-- Calls on an uncontended lock: done 2, waits 8.
local name = 'w:' .. ARGV[1]
local what, asked_gen = string.byte(ARGV[2]), peel('>d', ARGV[2], 18)

-- include many.lua
local record = lock.listed > 0 and lock.get(name)
if record and string.byte(record) == 1 then
  lock.fields[name] = false
  lock.unlist(name)
  lock.finish(true)
  return {0}
end
if not record then
  if asked_gen >= 0 and asked_gen < gen then
    lock.finish(true)
    return {2}
  end
  if what < 4 and lock.is_free(what) then
    lock.finish(true)
    return {0}
  end
  -- The capacity of a use that is over shall not come back with a watcher.
  if not lock.is_in_use() then
    capacity = 0
    gen = math.max(gen, asked_gen)
  end
  lock.waits[what] = lock.waits[what] + 1
  lock.places[name] = -what
  lock.list(name, now + lock.WATCH)
else
  what = string.byte(record, 2)
  lock.relist(name, now + lock.WATCH)
end
lock.fields[name] = '\0' .. string.char(what) .. sub(ARGV[2], 2, 17)
lock.far = math.max(lock.far, now + lock.WATCH)
local at, times = lock.waiting(what < 4)
lock.finish(false)
return {1, at, times, 1 - denied}
