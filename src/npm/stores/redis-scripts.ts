// The Lua scripts of the Redis store. Redis runs each script atomically. All keys of a script have the same hash tag.

import { createHash } from "node:crypto";

/** A Lua script. */
export interface Script {
  /** The text of the script. */
  readonly source: string;
  /** The SHA-1 of the text, by which Redis knows the script. */
  readonly sha: string;
}

const script = (source: string): Script => ({ source, sha: createHash("sha1").update(source).digest("hex") });

// Both keys are checked before anything is written, because Redis does not undo a script that fails half-way. The empty field
// marks a user who has been written to, and is not counted. If the two counts differ, the server has evicted one of the keys.
const BEGIN = `
local records, names = KEYS[1], KEYS[2]
local isThere = redis.call('HEXISTS', records, '')
if redis.call('HLEN', records) - isThere ~= redis.call('ZCARD', names) then return 'lost' end
`;

/** ARGV: the keys. Returns whether the user exists, then a record or nil for each key. */
export const GET = script(`${BEGIN}
local found = { isThere }
for index, key in ipairs(ARGV) do found[index + 1] = redis.call('HGET', records, key) end
return found
`);

/**
 * ARGV: prefix, the key to continue after or "", limit, and 1 for keys only. Returns whether the user exists, whether there
 * may be more, then keys and records in turn: up to the limit, or up to four megabytes.
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
 * ARGV: the expected key and its expected state, its state after this batch, the numbers of prefixes, keys to remove and
 * records, then these prefixes, keys and records.
 *
 * A client that lost its connection may send the same script again (ioredis does). Revisions are never used twice, so if the
 * key has the revision of this batch already, the batch is done.
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
