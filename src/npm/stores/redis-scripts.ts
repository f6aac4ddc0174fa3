// The scripts that Redis runs, each in one step. All keys of a script have the same hash tag.

import { createHash } from "node:crypto";

export interface Script {
  readonly source: string;
  readonly sha: string;
}

const script = (source: string): Script => ({ source, sha: createHash("sha1").update(source).digest("hex") });

// Both keys are looked at before anything is written: a script that fails half-way is not taken back. The empty field
// marks a user that was written to, and is not counted. If the numbers differ, the server has thrown one key away.
const BEGIN = `
local records, names = KEYS[1], KEYS[2]
local isThere = redis.call('HEXISTS', records, '')
if redis.call('HLEN', records) - isThere ~= redis.call('ZCARD', names) then return 'lost' end
`;

/** ARGV: the keys. Answers whether the user is there, and a record or nil for each. */
export const GET = script(`${BEGIN}
local found = { isThere }
for index, key in ipairs(ARGV) do found[index + 1] = redis.call('HGET', records, key) end
return found
`);

/**
 * ARGV: prefix, the key to go on after or nothing, limit, and 1 if keys are enough. Answers whether the user is there,
 * whether there may be more, and with keys and records in turn: as many as are asked for, or four megabytes.
 */
export const LIST = script(`${BEGIN}
local prefix, after = ARGV[1], ARGV[2]
local from = '[' .. prefix
if after >= prefix and after ~= '' then from = '(' .. after end
local keys = redis.call('ZRANGEBYLEX', names, from, '(' .. prefix .. '\\255', 'LIMIT', 0, ARGV[3])
local found = { isThere, 1 }
local bytes = 0
for _, key in ipairs(keys) do
  local record = redis.call('HGET', records, key)
  if not record then return 'lost' end
  if ARGV[4] == '1' then record = string.match(record, '^[^\\n]*\\n') .. 'u' end
  found[#found + 1] = key
  found[#found + 1] = record
  bytes = bytes + #record
  if bytes > 4194304 then return found end
end
if #keys < tonumber(ARGV[3]) then found[2] = 0 end
return found
`);

/**
 * ARGV: the expected key and what it is expected to be, what it is after this batch, how many prefixes, keys to remove
 * and records there are, and those one after the other.
 *
 * A client that lost its connection may send the same script again (ioredis does). Revisions are never used twice, so
 * a key that has this batch's own says that the batch is done.
 */
export const COMMIT = script(`${BEGIN}
local expected = ARGV[2]
if expected ~= 'any' then
  local record = redis.call('HGET', records, ARGV[1])
  local found = 'absent'
  if record then found = 'is\\n' .. string.match(record, '^[^\\n]*') end
  if found ~= expected then return found == ARGV[3] and 'ok' or 'conflict' end
end
redis.call('HSET', records, '', '')
local at = 7
for index = 1, ARGV[4] do
  local prefix = ARGV[at]
  at = at + 1
  while true do
    local keys = redis.call('ZRANGEBYLEX', names, '[' .. prefix, '(' .. prefix .. '\\255', 'LIMIT', 0, 1000)
    if #keys == 0 then break end
    redis.call('HDEL', records, unpack(keys))
    redis.call('ZREM', names, unpack(keys))
  end
end
for index = 1, ARGV[5] do
  redis.call('HDEL', records, ARGV[at])
  redis.call('ZREM', names, ARGV[at])
  at = at + 1
end
for index = 1, ARGV[6] do
  redis.call('HSET', records, ARGV[at], ARGV[at + 1])
  redis.call('ZADD', names, 0, ARGV[at])
  at = at + 2
end
return 'ok'
`);
