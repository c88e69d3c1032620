-- What every script begins with: the lock's state and the time. Kept short: the server runs it at
-- each call, and making a function costs more than what it does. The layout is written in README.md.
--
-- KEYS  1 S, the state (string)   2 T, the records (hash)
--       3 H, what runs out (sorted set by time)   4 Q, who waits (sorted set by arrival)
-- A reply is a list that begins with a code, or a code alone, or the grant that was asked for (GRANT).
-- Reply {-1, layout} another layout wrote the lock (L9)   {-2} what lies there is no lock
--
-- L1: only TIME decides. Key expiry is garbage collection: it comes later than anything that counts.
local call, pack, peel, sub = redis.call, struct.pack, struct.unpack, string.sub
local LAYOUT, HEAD_LEN, RETAIN = 2, 57, 2000000
-- Fence, us left (-1: no TTL), generation, TTL in ms (0: none), capacity. Packed: a list costs the server
-- twice as much.
local GRANT = '>dddI4I4'
local raw = call('GET', KEYS[1])
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local many, denied, toklen, capacity, fence, gen, remembered = 0, 0, 0, 0, 0, 0, 0
-- L7: until when copies of ended acquisitions may come, the stamp of none of them is later than this,
-- and the attempt that ended last.
local copies_end, newest, ended = 0, 0, '\0\0\0\0\0\0\0\0'
if raw then
  if #raw < HEAD_LEN or sub(raw, 1, 2) ~= 'L\2' then
    local magic, layout = string.byte(raw, 1, 2)
    if magic ~= 76 or layout == LAYOUT then return {-2} end
    return {-1, layout or 0}
  end
  many, denied, toklen, capacity, fence, gen, remembered, copies_end, newest, ended =
    peel('>BBBI4dddddc8', raw, 3)
end
