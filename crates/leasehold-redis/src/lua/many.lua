-- What is needed once a lock is more than one holder alone: the queue (rules Q), claims (L10), what
-- runs out (T3), watchers (U), pushes (L5). Included by scripts after their short ways out; `now`,
-- `raw` and the fields of S come from head.lua. When it is through, the lock has ticked.
--
-- Changes of T, H and Q are collected and written by `finish`, what deletes first (see `put`).
--
-- All of it lies in one table: a function that reaches for many locals makes the server search for
-- each of them whenever the function is made, and it is made at each call.
local lock = {
  -- A record begins with its state (head.lua, README.md).
  STATE_GRANTED = 1, STATE_CLAIMED = 2, STATE_WAITING = 3, STATE_REJECTED = 4,
  MANY = '>I4I4I4I4I4I4I4I4I4ddddd', MANY_LEN = 76, RECORD_LEN = 74, REQUEST_LEN = 34,
  -- In microseconds: how long a waiter may be silent (L4), how often it beats, how long what is done or rejected waits to be
  -- told, a watcher may be silent; how much longer than needed keys live, so that it is set seldom.
  LIVENESS = 10000000, BEAT = 3000000, TELL = 30000000, WATCH = 30000000, SLACK = 20000000,
  SWEEP_MAX = 128, WINDOW = 32, CHUNK = 500, TOLD_MAX = 64, FOREVER = math.huge,
  T = KEYS[2], H = KEYS[3], Q = KEYS[4],
  -- Permits held by all; grants in T and H, where they are once there is more than one; those of
  -- them without expiry; waiters; members of H; the latest arrival's number.
  used = 0, plural = 0, endless = 0, queued = 0, listed = 0, arrivals = 0,
  -- Watchers that wait, by what for.
  waits = {0, 0, 0, 0},
  -- The head's arrival number, and its record where it is known.
  first = 0, front = nil,
  -- Nothing in H runs out before `soon`. The latest expiry that whoever times it knows.
  soon = 0, told = 0,
  -- When T, H and Q may go; -1: never. The latest time that this step needs them for.
  keep = 0, far = 0,
  -- The one grant that is not in T, by token and record.
  sole = nil, holder = nil,
  -- What this step has read of T, and what it changes of T, H and Q; false: goes.
  seen = {}, fields = {}, ends = {}, places = {}, pushes = {}, claims = {},
  head_changed = false, told_in_reply = false, gap = 0, gap_known = false,
}
do
  local at = HEAD_LEN + 1
  if many == 1 then
    local waits = lock.waits
    lock.used, lock.plural, lock.queued, lock.listed, lock.endless, waits[1], waits[2], waits[3],
      waits[4], lock.arrivals, lock.first, lock.soon, lock.told, lock.keep = peel(lock.MANY, raw, at)
    at = at + lock.MANY_LEN
  end
  if toklen > 0 then
    lock.sole, lock.holder = sub(raw, at, at + toklen - 1), sub(raw, at + toklen)
    if many == 0 then lock.used = peel('>I4', lock.holder, 27) end
  end
end

-- Reads fields of T, as this step has left them.
function lock.fetch(names)
  local missing = {}
  for _, name in ipairs(names) do
    if lock.fields[name] == nil and lock.seen[name] == nil then missing[#missing + 1] = name end
  end
  if #missing > 0 then
    local values = many == 1 and call('HMGET', lock.T, unpack(missing)) or {}
    for index, name in ipairs(missing) do lock.seen[name] = values[index] or false end
  end
end

function lock.get(name)
  if lock.fields[name] ~= nil then return lock.fields[name] end
  if lock.seen[name] == nil then lock.fetch({name}) end
  return lock.seen[name]
end

-- H: what runs out. Scores are times; a grant without TTL is in it too, at the end of time.
function lock.list(name, at)
  lock.listed = lock.listed + 1
  lock.ends[name] = at
  if at < lock.FOREVER then
    if lock.soon == 0 or at < lock.soon then lock.soon = at end
    lock.far = math.max(lock.far, at)
  end
end

function lock.relist(name, at)
  lock.ends[name] = at
  if at < lock.FOREVER then
    if lock.soon == 0 or at < lock.soon then lock.soon = at end
    lock.far = math.max(lock.far, at)
  end
end

function lock.unlist(name)
  lock.ends[name] = false
  lock.listed = lock.listed - 1
  if lock.listed == 0 then lock.soon = 0 end
end

-- L7: whether this very attempt is known to be over, and whether its request may be a copy of one that
-- is: it was sent before another that has ended since. Sent anew, with a later stamp, it is none.
function lock.is_tombstone(attempt)
  return attempt == ended and copies_end > now
    or lock.listed > 0 and lock.get('x:' .. attempt) and true or false
end

-- Until its limit, a copy of this acquisition may come, and is to find that it is over. S remembers all
-- of them by their latest stamp, so that a busy name costs what an idle one costs.
function lock.bury(record)
  local limit, stamp = peel('>dd', record, 59)
  if limit <= now then return end
  if copies_end <= now then newest = 0 end
  copies_end, newest = math.max(copies_end, limit), math.max(newest, stamp)
  ended = sub(record, 3, 10)
end

-- The same for copies that the client knows of, whatever their stamps: T remembers each attempt, to go
-- together second by second.
function lock.bury_known(attempt, limit)
  if limit > now and not lock.get('x:' .. attempt) then
    lock.fields['x:' .. attempt] = '1'
    lock.list('x:' .. attempt, math.ceil(limit / 1000000) * 1000000)
  end
end

function lock.push(client, wake, verb)
  local channel = lock.pushes[client]
  if not channel then
    channel = {}
    lock.pushes[client] = channel
    lock.pushes[#lock.pushes + 1] = client
  end
  channel[#channel + 1] = {verb, string.format('%.0f', wake)}
end

-- A record with another expiry (and state).
function lock.with_end(record, state, ending)
  return string.char(state) .. sub(record, 2, 50) .. pack('>d', ending) .. sub(record, 59)
end

function lock.is_live(record)
  local ending = peel('>d', record, 51)
  return ending == 0 or ending > now
end

-- The grant of a token: its record, or nil.
function lock.grant_of(token)
  if token == lock.sole then return lock.holder end
  local record = lock.plural > 0 and lock.get('t:' .. token)
  if record and string.byte(record) <= lock.STATE_CLAIMED and lock.is_live(record) then return record end
end

-- Q3 is in here: whoever is granted, is placed in the step that freed the permits.
function lock.place(token, record, ending)
  lock.used = lock.used + peel('>I4', record, 27)
  lock.far = math.max(lock.far, ending)
  if not lock.sole and lock.plural == 0 then
    lock.sole, lock.holder = token, record
    return false
  end
  if lock.sole then
    local sole_end = peel('>d', lock.holder, 51)
    lock.fields['t:' .. lock.sole] = lock.holder
    lock.list('t:' .. lock.sole, sole_end > 0 and sole_end or lock.FOREVER)
    lock.plural = lock.plural + 1
    if sole_end == 0 then lock.endless = lock.endless + 1 end
    lock.sole, lock.holder = nil, nil
  end
  lock.fields['t:' .. token] = record
  lock.list('t:' .. token, ending > 0 and ending or lock.FOREVER)
  lock.plural = lock.plural + 1
  if ending == 0 then lock.endless = lock.endless + 1 end
  return true
end

-- Puts a changed record of a grant back.
function lock.replace(token, record)
  local ending = peel('>d', record, 51)
  lock.far = math.max(lock.far, ending)
  if token == lock.sole then
    lock.holder = record
    return
  end
  local before = peel('>d', lock.get('t:' .. token), 51)
  if before == 0 then lock.endless = lock.endless - 1 end
  if ending == 0 then lock.endless = lock.endless + 1 end
  lock.fields['t:' .. token] = record
  if before ~= ending then lock.relist('t:' .. token, ending > 0 and ending or lock.FOREVER) end
end

-- The end of a grant, however it came about.
function lock.end_grant(token, record)
  local ending = peel('>d', record, 51)
  lock.used = lock.used - peel('>I4', record, 27)
  if token == lock.sole then
    lock.sole, lock.holder = nil, nil
  else
    lock.plural = lock.plural - 1
    if ending == 0 then lock.endless = lock.endless - 1 end
    lock.fields['t:' .. token] = false
    lock.unlist('t:' .. token)
  end
  lock.bury(record)
end

function lock.leave_queue(token)
  lock.fields['t:' .. token], lock.fields['b:' .. token], lock.places['t:' .. token] = false, false, false
  lock.queued = lock.queued - 1
end

-- L4: when nobody could beat for long, because the server stood or its clock was stepped, nobody
-- is taken for silent before everybody had the time to beat again.
function lock.know_gap()
  if lock.gap_known then return end
  lock.gap_known = true
  local last, since = lock.get('l'), lock.get('z')
  last = last and peel('>d', last) or now
  lock.gap = since and peel('>d', since) or 0
  if last > now or now - last > lock.LIVENESS then
    lock.gap = now
    lock.fields.z, lock.fields.l = pack('>d', now), pack('>d', now)
  end
end

function lock.is_silent(token)
  local last = lock.get('b:' .. token)
  last = last and peel('>d', last) or 0
  if last <= now and now - last < lock.LIVENESS then return false end
  lock.know_gap()
  return not (lock.gap <= now and now - lock.gap < lock.LIVENESS)
end

function lock.beat(token)
  lock.know_gap()
  local at = pack('>d', now)
  lock.fields['b:' .. token], lock.fields.l = at, at
  lock.far = math.max(lock.far, now + lock.LIVENESS)
end

-- L10: a short grant, which its confirmation makes a long one.
function lock.claim(token, record)
  local ttl, _, _, term = peel('>I4ddd', record, 31)
  if ttl > 0 then term = math.min(term, ttl) end
  fence = math.max(fence + 1, now)
  local ending = now + term * 1000
  local client, wake = peel('>c8d', record, 11)
  lock.leave_queue(token)
  lock.place(token, string.char(lock.STATE_CLAIMED) .. sub(record, 2, lock.REQUEST_LEN)
    .. pack('>ddd', fence, now, ending) .. sub(record, 59), ending)
  lock.push(client, wake, 'w')
  lock.claims[token] = term
end

-- Q2: from the head, all or nothing, until the head does not fit. L4: who is silent, leaves. What
-- it finds at the head in the end is known in `first` and `front`.
function lock.grant_on()
  if lock.queued == 0 then
    lock.first, lock.front = 0, nil
    return
  end
  if lock.used >= capacity and lock.first > 0 then return end
  local offset, count = 0, 2
  while lock.queued > 0 do
    local members = call('ZRANGEBYSCORE', lock.Q, 1, '+inf', 'LIMIT', offset, count)
    local names = {'l', 'z'}
    for _, member in ipairs(members) do
      if lock.places[member] ~= false then
        names[#names + 1], names[#names + 2] = member, 'b:' .. sub(member, 3)
      end
    end
    if #names > 2 then lock.fetch(names) end
    for _, member in ipairs(members) do
      if lock.places[member] ~= false then
        local token, record = sub(member, 3), lock.get(member)
        if not record then
          lock.leave_queue(token)
        elseif lock.is_silent(token) then
          lock.leave_queue(token)
          lock.bury(record)
        elseif peel('>I4', record, 27) <= capacity - lock.used then
          lock.claim(token, record)
        else
          local arrival = peel('>d', record, 35)
          if arrival ~= lock.first then lock.head_changed = true end
          lock.first, lock.front = arrival, record
          return
        end
      end
    end
    if #members < count then
      -- All were looked at: whoever else was counted is not there.
      lock.queued = 0
    end
    offset, count = offset + #members, lock.WINDOW
  end
  lock.first, lock.front = 0, nil
end

function lock.is_free(what)
  if what == 1 then return lock.used == 0 end
  return (lock.used == 0 or lock.used < capacity) and (what == 2 or lock.queued == 0)
end

-- A watcher's record: done or not, what for, client, wake.
function lock.complete(what)
  local members = call('ZRANGEBYSCORE', lock.Q, -what, -what)
  for start = 1, #members, lock.CHUNK do
    lock.fetch({unpack(members, start, math.min(start + lock.CHUNK - 1, #members))})
  end
  for _, member in ipairs(members) do
    local record = lock.places[member] ~= false and lock.get(member)
    if record then
      local client, wake = peel('>c8d', record, 3)
      lock.fields[member], lock.places[member] = '\1' .. sub(record, 2), false
      lock.relist(member, now + lock.TELL)
      lock.push(client, wake, 'w')
    end
  end
  lock.waits[what] = 0
end

-- U1: at the end of a step, so a hand-off makes nothing free. Done stays done.
function lock.complete_watchers()
  for what = 1, 3 do
    if lock.waits[what] > 0 and lock.is_free(what) then lock.complete(what) end
  end
end

-- T3, L1: what is overdue is gone, whoever looks first; at most so many at a time.
function lock.sweep()
  local members = call('ZRANGEBYSCORE', lock.H, '-inf', now, 'LIMIT', 0, lock.SWEEP_MAX)
  if #members > 0 then lock.fetch(members) end
  for _, member in ipairs(members) do
    local kind, record = sub(member, 1, 2), lock.get(member)
    if kind == 't:' and record and string.byte(record) <= lock.STATE_CLAIMED then
      lock.end_grant(sub(member, 3), record)
    else
      if kind == 'w:' and record and string.byte(record) == 0 then
        local what = string.byte(record, 2)
        lock.waits[what] = lock.waits[what] - 1
        lock.places[member] = false
      end
      lock.fields[member] = false
      lock.unlist(member)
    end
  end
  if #members == lock.SWEEP_MAX then
    lock.soon = now
  elseif lock.listed > 0 then
    local later = call('ZRANGEBYSCORE', lock.H, '(' .. string.format('%.0f', now), '+inf',
      'WITHSCORES', 'LIMIT', 0, 1)
    lock.soon = later[2] and later[2] ~= 'inf' and tonumber(later[2]) or 0
    -- Only what has no end is left, whatever was counted.
    if lock.soon == 0 then lock.listed, lock.plural = lock.endless, lock.endless end
  end
end

do
  local before = lock.used
  if lock.holder and not lock.is_live(lock.holder) then lock.end_grant(lock.sole, lock.holder) end
  if lock.soon > 0 and lock.soon <= now then lock.sweep() end
  -- Only after it: what H has is all that a sweep knows, and not what this step places.
  if many == 1 and lock.used < before then
    lock.grant_on()
    lock.complete_watchers()
  end
end

-- How many are in Q: watchers, and after them waiters.
function lock.in_queue()
  return lock.queued + lock.waits[1] + lock.waits[2] + lock.waits[3] + lock.waits[4]
end

function lock.is_in_use()
  return lock.used > 0 or lock.in_queue() > 0
end

-- When the next grant runs out; nil: none does.
function lock.next_end()
  local at = lock.soon
  if lock.holder then
    local ending = peel('>d', lock.holder, 51)
    if ending > 0 and (at == 0 or ending < at) then at = ending end
  end
  if at > 0 then return at end
end

-- One of the holders, and since when: for messages (E2).
function lock.obstacle(ahead)
  local record = lock.holder
  if not record and lock.plural > 0 then
    -- The first or the last to run out are holders, unless crowds that were rejected surround them.
    for _, command in ipairs({'ZRANGE', 'ZREVRANGE'}) do
      local members = record and {} or call(command, lock.H, 0, 7)
      lock.fetch(members)
      for _, member in ipairs(members) do
        local found = sub(member, 1, 2) == 't:' and lock.get(member)
        if found and string.byte(found) <= lock.STATE_CLAIMED then record = found end
      end
    end
  end
  if not record then return ahead, -1, '' end
  return ahead, math.max(0, now - peel('>d', record, 43)), sub(record, lock.RECORD_LEN + 1)
end

-- What a grant is answered as.
function lock.as_grant(record)
  local ttl, given, _, ending = peel('>I4ddd', record, 31)
  return pack(GRANT, given, ending > 0 and ending - now or -1, gen, ttl, capacity)
end

-- How many wait before a waiter.
function lock.ahead_of(token)
  local rank = call('ZRANK', lock.Q, 't:' .. token)
  return rank and math.max(0, rank - lock.in_queue() + lock.queued) or 0
end

-- What a waiter or watcher is told to do; also notes that it was told.
function lock.waiting(times)
  local at = lock.next_end()
  if times and at and at > lock.told then lock.told = at end
  return at and math.max(0, at - now) or -1, times and 1 or 0
end

-- Writes changes of one key, in pieces that Lua can pass on. Says how many there were, and how many
-- of them were new to the key.
function lock.write(command, key, changes, goes, must)
  local arguments, step = {}, goes and 1 or 2
  for name, value in pairs(changes) do
    if goes == (value == false) then
      if command == 'ZADD' then
        arguments[#arguments + 1] = value == lock.FOREVER and '+inf' or value
        arguments[#arguments + 1] = name
      else
        arguments[#arguments + 1] = name
        if not goes then arguments[#arguments + 1] = value end
      end
    end
  end
  local count, new = #arguments / step, 0
  for start = 1, #arguments, step * lock.CHUNK do
    local last = math.min(start + step * lock.CHUNK - 1, #arguments)
    local result = (must and redis.pcall or call)(command, key, unpack(arguments, start, last))
    if type(result) == 'table' then
      -- Out of memory, in a step that must work: see `put`.
      call('PERSIST', KEYS[1])
      result = call(command, key, unpack(arguments, start, last))
    end
    must, new = false, new + result
  end
  return count, new
end

-- T, H and Q; what deletes comes first. Says whether H and Q may have been made anew.
function lock.write_changes(must)
  local left, gone = 0, 0
  if many == 1 then
    left = lock.write('ZREM', lock.Q, lock.places, true, must)
    gone = lock.write('ZREM', lock.H, lock.ends, true, must and left == 0)
    local cleared = lock.write('HDEL', lock.T, lock.fields, true, must and left + gone == 0)
    must = must and left + gone + cleared == 0
  end
  local set, new = lock.write('HSET', lock.T, lock.fields, false, must)
  if set > 0 then must = false end
  if many == 0 then
    -- S may have been lost and the others not: a deleted key, or a clock that went ahead, so that S
    -- ran out and was looked at, and back, so that the others had not. They are another lock's life.
    call('DEL', lock.H, lock.Q)
    if new < set then
      call('DEL', lock.T)
      lock.write('HSET', lock.T, lock.fields, false, false)
    end
  end
  local came = lock.write('ZADD', lock.H, lock.ends, false, must)
  local joined = lock.write('ZADD', lock.Q, lock.places, false, must and came == 0)
  must = must and came + joined == 0
  return must, came > 0 and (gone > 0 or many == 0 or lock.listed == came),
    joined > 0 and (left > 0 or many == 0 or lock.in_queue() == joined)
end

-- L5: one message of a kind for all that one client is to look at.
function lock.send_pushes(verb, first)
  for _, client in ipairs(lock.pushes) do
    local words = {first}
    for _, one in ipairs(lock.pushes[client]) do
      if one[1] == verb then words[#words + 1] = one[2] end
    end
    if #words > 1 then
      local channel = string.match(KEYS[1], '^[^{]*') .. 'client:'
        .. string.format('%08x%08x', peel('>I4I4', client))
      denied = type(redis.pcall('PUBLISH', channel, table.concat(words, ' '))) == 'table' and 1 or 0
    end
  end
end

-- L10: who is not told of a claim sees it at the next beat. A claim that was over by then would cost
-- the waiter its turn, and a lost push may only delay (L5).
function lock.lengthen_claims()
  for token, term in pairs(lock.claims) do
    local record = lock.grant_of(token)
    if record and string.byte(record) == lock.STATE_CLAIMED then
      local ttl, _, _, ending = peel('>I4ddd', record, 31)
      local longer = lock.BEAT / 1000 + term
      if ttl > 0 then longer = math.min(longer, ttl) end
      if ending > 0 then
        ending = math.max(ending, now + longer * 1000)
        lock.replace(token, lock.with_end(record, lock.STATE_CLAIMED, ending))
      end
    end
  end
end

-- S, and how long the keys live if nobody comes any more.
function lock.write_state(many_now, must, new_h, new_q)
  local rest, sole_end = '', lock.holder and peel('>d', lock.holder, 51) or 0
  local deadline = math.max(fence, remembered, sole_end, copies_end)
  local endures = lock.endless > 0 or (lock.holder and sole_end == 0)
  if many_now == 1 then
    local before = many == 1 and lock.keep or 0
    if endures then
      lock.keep = -1
    else
      -- That an end is remembered, S alone is needed for.
      deadline = math.max(fence, sole_end, lock.far)
      if before == -1 then
        local last = call('ZREVRANGEBYSCORE', lock.H, '(+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
        deadline = math.max(deadline, tonumber(last[2] or 0), now + lock.LIVENESS)
      end
      if before < deadline then lock.keep = deadline + lock.SLACK end
    end
    local all = lock.keep ~= before or many == 0
    for key, is_new in pairs({[lock.T] = all, [lock.H] = all or new_h, [lock.Q] = all or new_q}) do
      local is_there = key == lock.T or key == lock.H and lock.listed > 0
        or key == lock.Q and lock.in_queue() > 0
      if is_new and is_there then
        if lock.keep ~= -1 then
          call('PEXPIRE', key, math.ceil((lock.keep - now + RETAIN) / 1000))
        elseif all then
          call('PERSIST', key)
        end
      end
    end
    deadline = lock.keep == -1 and 0 or math.max(lock.keep, remembered, copies_end)
    local waits = lock.waits
    rest = pack(lock.MANY, lock.used, lock.plural, lock.queued, lock.listed, lock.endless, waits[1],
      waits[2], waits[3], waits[4], lock.arrivals, lock.first, lock.soon, lock.told, lock.keep)
  elseif endures then
    deadline = 0
  end
  local value = head(many_now, lock.sole and #lock.sole or 0) .. rest .. (lock.sole or '')
    .. (lock.holder or '')
  local is_nothing = not raw and many_now == 0 and not lock.sole and copies_end == 0 and remembered == 0
  if value ~= raw and not is_nothing then put(value, deadline, must) end
end

-- Every step ends here: grants on, completes watchers, tells who is to time the next expiry, writes.
function lock.finish(must, is_settled)
  if not is_settled then lock.grant_on() end
  if lock.waits[1] + lock.waits[2] + lock.waits[3] > 0 then lock.complete_watchers() end
  if #lock.pushes > 0 then
    lock.send_pushes('w', 'w')
    if denied == 1 then lock.lengthen_claims() end
  end
  local at = lock.next_end()
  if at and at < lock.told then
    if lock.waits[1] + lock.waits[2] + lock.waits[3] > 0 then
      local members = call('ZRANGEBYSCORE', lock.Q, -3, -1, 'LIMIT', 0, lock.TOLD_MAX)
      lock.fetch(members)
      for _, member in ipairs(members) do
        local record = lock.places[member] ~= false and lock.get(member)
        if record then
          local client, wake = peel('>c8d', record, 3)
          lock.push(client, wake, 't')
        end
      end
    end
  end
  if at and lock.queued > 0 and not lock.told_in_reply and (lock.head_changed or at < lock.told) then
    if not lock.front then
      local member = call('ZRANGEBYSCORE', lock.Q, lock.first, lock.first)[1]
      lock.front = member and lock.get(member)
    end
    if lock.front then
      local client, wake = peel('>c8d', lock.front, 11)
      lock.push(client, wake, 't')
    end
  end
  if at and (at < lock.told or lock.head_changed) then lock.told = at end

  local many_now = (lock.queued > 0 or lock.plural > 0 or lock.listed > 0) and 1 or 0
  local new_h, new_q = many == 0, many == 0
  if many_now == 1 then
    -- T is never empty meanwhile, so its expiry stays with it.
    if many == 0 then lock.fields.l = lock.fields.l or pack('>d', now) end
    must, new_h, new_q = lock.write_changes(must)
  elseif many == 1 then
    call('DEL', lock.T, lock.H, lock.Q)
    must = false
  end
  if at and #lock.pushes > 0 then
    lock.send_pushes('t', 't ' .. string.format('%.0f', math.max(0, at - now)))
  end
  lock.write_state(many_now, must, new_h, new_q)
end
