-- How waiters are put out: with word of why, which one field has for all of them.
local reason = nil
function lock.reject(token, record, kind, text)
  if not reason then
    lock.arrivals = lock.arrivals + 1
    reason = lock.arrivals
    local name = 'r:' .. string.format('%.0f', reason)
    lock.fields[name] = string.char(kind) .. text
    -- A moment longer than those who are told of it.
    lock.list(name, now + lock.TELL + 1000000)
  end
  local client, wake = peel('>c8d', record, 11)
  lock.fields['t:' .. token] = string.char(lock.STATE_REJECTED) .. sub(record, 2, lock.REQUEST_LEN)
    .. pack('>ddd', reason, now, now + lock.TELL) .. sub(record, 59, lock.RECORD_LEN)
  lock.list('t:' .. token, now + lock.TELL)
  lock.push(client, wake, 'w')
end

function lock.reject_all(kind, text)
  local members = lock.queued > 0 and call('ZRANGEBYSCORE', lock.Q, 1, '+inf') or {}
  local count = 0
  for start = 1, #members, lock.CHUNK do
    lock.fetch({unpack(members, start, math.min(start + lock.CHUNK - 1, #members))})
  end
  for _, member in ipairs(members) do
    local record = lock.places[member] ~= false and lock.get(member)
    if record then
      local token = sub(member, 3)
      lock.leave_queue(token)
      lock.reject(token, record, kind, text)
      count = count + 1
    end
  end
  lock.queued, lock.first = 0, 0
  return count
end
