-- Writing S; for all but the two steps that everybody makes, which write it without a function.
-- The beginning of S.
local function head(many_now, toklen_now)
  return pack('>BBBBBI4dddddc8', 76, LAYOUT, many_now, denied, toklen_now, capacity, fence, gen,
    remembered, copies_end, newest, ended)
end

-- Writes S, which may go once `deadline` has passed; 0: it stays. A step that must work in a server
-- that is out of memory writes what frees memory first: after one write, the server lets the rest
-- of a script pass.
local function put(value, deadline, must)
  local arguments = {'SET', KEYS[1], value}
  if deadline > 0 then
    arguments[4], arguments[5] = 'PX', math.ceil((math.max(deadline, now) - now + RETAIN) / 1000)
  end
  if not must then
    call(unpack(arguments))
  elseif redis.pcall(unpack(arguments)).err then
    call('PERSIST', KEYS[1])
    call(unpack(arguments))
  end
end
