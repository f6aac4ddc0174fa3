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

/** The most seconds since the last sign of life of a replica that counts as connected. Redis has the same default (min-replicas-max-lag). */
const MOST_LAG = 10;

// A replica that was a master a moment ago would answer with old records. Sets `replicas` to the number of connected replicas, or
// to -1 if the user of the client may not ask for it.
const MASTER = `
local server = redis.pcall('INFO', 'replication')
local replicas = -1
if type(server) == 'string' then
  if string.find(server, 'role:slave', 1, true) then return redis.error_reply('READONLY this server is a replica') end
  replicas = 0
  for line in string.gmatch(server, 'slave%d+:([^\\r\\n]*)') do
    local isOnline = string.find(line, 'state=online', 1, true)
    if isOnline and tonumber(string.match(line, 'lag=(%d+)') or 0) <= ${MOST_LAG} then replicas = replicas + 1 end
  end
end
`;

// Both keys are checked before anything is written, because Redis does not undo a script that fails half-way. The empty field
// marks a user who has been written to, and is not counted. If the two counts differ, the server has evicted one of the keys.
const BEGIN = `${MASTER}
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
 * records, then these prefixes, keys and records. Returns what became of the batch, and the number of connected replicas.
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
  if found == ARGV[3] and found ~= expected then
    redis.call('HSET', records, '', '')
    return { 'ok', replicas }
  end
  if found ~= expected then return { 'conflict', replicas } end
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
return { 'ok', replicas }
`);

/**
 * Changes nothing, but writes to a user who exists: a replica that has this write has all writes before it. ARGV: a key and its
 * revision, or nothing. Returns as COMMIT; "gone" if the key does not have the revision.
 */
export const CONFIRM = script(`${BEGIN}
if ARGV[1] then
  local record = redis.call('HGET', records, ARGV[1])
  if not record or string.match(record, '^[^\\n]*') ~= ARGV[2] then return { 'gone', replicas } end
end
if isThere == 1 then redis.call('HSET', records, '', '') end
return { 'ok', replicas }
`);

/** ARGV: a user, and 0 before the user's first record or 1 after it. Never turns 1 into 0. Returns as COMMIT. */
export const ADD_USER = script(`${MASTER}
local before = redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], math.max(tonumber(before), tonumber(ARGV[2])), ARGV[1])
return { 'ok', replicas }
`);

/**
 * ARGV: the bounds of the names. Returns 1 and the users between them, in order. Or 0 and all users: Redis finds names between
 * bounds only if all have the same score, and while a user's first record is being written the user has another one.
 */
export const USERS = script(`${MASTER}
local users = KEYS[1]
if redis.call('ZCOUNT', users, 0, 0) > 0 then return { 0, redis.call('ZRANGE', users, 0, -1) } end
return { 1, redis.call('ZRANGEBYLEX', users, ARGV[1], ARGV[2]) }
`);
