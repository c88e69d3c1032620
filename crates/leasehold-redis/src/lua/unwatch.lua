-- UNWATCH: forgets a watcher. Works in a server that is out of memory.
--
-- ARGV  1 id
-- Reply {0}
local name = 'w:' .. ARGV[1]
if many == 0 then return {0} end

-- include many.lua
local record = lock.listed > 0 and lock.get(name)
if record then
  if string.byte(record) == 0 then
    local what = string.byte(record, 2)
    lock.waits[what] = lock.waits[what] - 1
    lock.places[name] = false
  end
  lock.fields[name] = false
  lock.unlist(name)
end
lock.finish(true)
return {0}
