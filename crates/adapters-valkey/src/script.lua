-- Counts rates by the generic cell rate algorithm, like `domain::rate::Gcra`: exactly, in whole units and parts of a
-- unit. Each product stays below 2^53, so that no number is rounded. A key holds "units parts seconds nanoseconds": the
-- level of a bucket and its time.
--
-- ARGV: "take" amount checked limit...     takes from the first `checked` keys, all or none; else releases one unit of
--                                          each further key
--       "correct" taken used limit...      corrects every key
-- Returns 1 or 0, then the units and parts of each checked key.

local MINUTE = 60000000000
local MAX_UNITS = 4503599627370496
local MAX_EXPIRY_MS = 315360000000
local MAX_DEBT_MINUTES = 60

local function quotient(number, divisor)
  return (number - math.fmod(number, divisor)) / divisor
end

-- The units and parts that leak in a time.
local function leaked(limit, seconds, nanos)
  local rest = math.fmod(seconds, 60)
  local units = (seconds - rest) / 60 * limit
  nanos = nanos + rest * 1000000000
  local high = quotient(limit, 65536)
  local low = limit - high * 65536
  local upper = nanos * high
  local middle = math.fmod(upper, MINUTE) * 65536
  local lower = math.fmod(middle, MINUTE) + nanos * low
  units = units + quotient(upper, MINUTE) * 65536 + quotient(middle, MINUTE) + quotient(lower, MINUTE)
  return units, math.fmod(lower, MINUTE)
end

-- The level of a bucket now. A time before the latest one counts as the latest one.
local function read(key, limit)
  local state = redis.call('GET', key)
  local units, parts, seconds, nanos = string.match(state or '', '^(%d+) (%d+) (%d+) (%d+)$')
  if not units then
    return { units = 0, parts = 0, seconds = now_seconds, nanos = now_nanos }
  end
  local bucket = {
    units = tonumber(units), parts = tonumber(parts), seconds = tonumber(seconds), nanos = tonumber(nanos)
  }
  local elapsed, elapsed_nanos = now_seconds - bucket.seconds, now_nanos - bucket.nanos
  if elapsed_nanos < 0 then
    elapsed, elapsed_nanos = elapsed - 1, elapsed_nanos + 1000000000
  end
  if elapsed < 0 then
    return bucket
  end
  bucket.seconds, bucket.nanos = now_seconds, now_nanos
  local less_units, less_parts = leaked(limit, elapsed, elapsed_nanos)
  if less_units > bucket.units or (less_units == bucket.units and less_parts >= bucket.parts) then
    bucket.units, bucket.parts = 0, 0
    return bucket
  end
  bucket.units, bucket.parts = bucket.units - less_units, bucket.parts - less_parts
  if bucket.parts < 0 then
    bucket.units, bucket.parts = bucket.units - 1, bucket.parts + MINUTE
  end
  return bucket
end

-- A key expires a second after its bucket is empty.
local function write(key, limit, bucket)
  local ahead = math.max(bucket.seconds - now_seconds, 0)
  local expiry = math.ceil((bucket.units + 1) / limit * 60000) + (ahead + 1) * 1000
  local state = string.format('%.0f %.0f %.0f %.0f', bucket.units, bucket.parts, bucket.seconds, bucket.nanos)
  redis.call('SET', key, state, 'PX', string.format('%.0f', math.min(expiry, MAX_EXPIRY_MS)))
end

local function correct(key, limit, taken, used)
  local bucket = read(key, limit)
  if used <= taken then
    local released = taken - used
    if released > bucket.units then
      bucket.units, bucket.parts = 0, 0
    else
      bucket.units = bucket.units - released
    end
  else
    local most, debt = limit * MAX_DEBT_MINUTES, bucket.units + (used - taken)
    if debt < most then
      bucket.units = debt
    elseif bucket.units < most then
      bucket.units, bucket.parts = most, 0
    end
  end
  write(key, limit, bucket)
end

if ARGV[1] == 'correct' then
  for index, key in ipairs(KEYS) do
    correct(key, tonumber(ARGV[3 + index]), tonumber(ARGV[2]), tonumber(ARGV[3]))
  end
  return { 1 }
end

local amount, checked = tonumber(ARGV[2]), tonumber(ARGV[3])
local reply, buckets = { 1 }, {}
for index = 1, checked do
  local limit = tonumber(ARGV[3 + index])
  local bucket = read(KEYS[index], limit)
  local room = math.max(limit - amount, 0)
  if bucket.units > room or (bucket.units == room and bucket.parts > 0) then
    reply[1] = 0
  end
  reply[2 * index], reply[2 * index + 1] = bucket.units, bucket.parts
  buckets[index] = bucket
end
if reply[1] == 0 then
  for index = checked + 1, #KEYS do
    correct(KEYS[index], tonumber(ARGV[3 + index]), 1, 0)
  end
  return reply
end
for index = 1, checked do
  local bucket = buckets[index]
  bucket.units = math.min(bucket.units + amount, MAX_UNITS)
  write(KEYS[index], tonumber(ARGV[3 + index]), bucket)
end
return reply
