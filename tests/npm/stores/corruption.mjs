// Random damage to the records of a session in a real store. Each reader returns what was said, or fails with STORE_CORRUPT; a
// repair mends the session or says that it cannot; another session in the same store is never affected.
import assert from "node:assert/strict";

/** Random numbers from a seed. */
function chanceOf(seed) {
  let state = BigInt(seed);
  const mask = (1n << 64n) - 1n;
  return (end) => {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let mixed = ((state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & mask;
    return Number((mixed ^ (mixed >> 31n)) % BigInt(end));
  };
}

/** Damages records below a prefix through the store itself, and says how. A record keeps its revision, or gets that of another. */
export async function damageRecords(store, prefix, below) {
  const own = await store.list(prefix);
  const log = own.filter(({ key }) => key.includes("/log/"));
  const one = own[below(own.length)];
  const other = own[below(own.length)];
  const put = async (key, { value, revision }, old) => {
    await store.commit({ revision: old ?? revision, put: [{ key, value }], remove: [] });
  };
  const kept = (record) => (below(2) === 0 ? record.revision : undefined);
  switch (below(5)) {
    case 0:
    case 1: {
      const value = Uint8Array.from(one.value);
      const places = Array.from({ length: 1 + below(4) }, () => below(value.length * 8));
      for (const place of places) value[place >> 3] ^= 1 << (place & 7);
      await put(one.key, { value, revision: one.revision });
      return `bits ${places} of ${one.key}`;
    }
    case 2:
      await store.commit({ revision: "x.9.x", put: [], remove: [one.key] });
      return `without ${one.key}`;
    case 3:
      await put(one.key, other, kept(one));
      await put(other.key, one, kept(other));
      return `${one.key} and ${other.key} are swapped`;
    default: {
      const from = below(log.length);
      for (const [n, record] of log.entries()) await put(record.key, log[(n + from) % log.length], kept(record));
      return `the log begins with entry ${from}`;
    }
  }
}

/**
 * Makes two sessions for each seed, damages the first and reads both. `open` opens the store anew: nothing of the sessions is
 * in memory then. `damage` changes the stored records of the first session.
 */
export async function damagedSessions({ kit, open, seeds, damage = damageRecords }) {
  const { createAgent, customModel, textOf } = kit;
  const model = customModel({
    id: "echo",
    async *generate({ messages }) {
      yield { type: "text", text: `to ${textOf(messages.at(-1))}` };
    },
  });
  const agentOn = async (store) => createAgent({ name: "helper", model, store });
  const counts = { refused: 0, repaired: 0 };
  for (const seed of seeds) {
    const below = chanceOf(seed);
    const slots = [`s${seed}`, `t${seed}`].map((sessionId) => ({ userId: "alice", sessionId }));
    const first = await open();
    const before = await agentOn(first);
    for (const slot of slots) for (const text of ["one", "two", "three"]) await before.call(text, slot);
    await before.resend(slots[0]).result;
    await before.call("four", slots[0]);
    const then = [];
    for (const slot of slots) then.push(await read(before, slot));
    await before.close();
    const how = `seed ${seed}: ${await damage(first, `1.t.helper/t.alice/slot/t.s${seed}/`, below)}`;
    await first.close?.();
    const store = await open();
    const agent = await agentOn(store);
    const now = await read(agent, slots[0]);
    let isRefused = false;
    for (const [reader, result] of Object.entries(now)) {
      if (result.code === undefined) assert.equal(result.text, then[0][reader].text, `${reader}: ${how}`);
      else assert.equal(result.code, "STORE_CORRUPT", `${reader}: ${how}: ${result.message}`);
      isRefused ||= result.code !== undefined;
    }
    counts.refused += isRefused ? 1 : 0;
    const called = await ended(agent.call("go on", slots[0]));
    assert.ok([undefined, "STORE_CORRUPT"].includes(called.code), `a call: ${how}: ${called.message}`);
    const repaired = await ended(agent.repairSession(slots[0]));
    if (repaired.code === undefined) {
      counts.repaired += 1;
      assert.equal(repaired.value.sessionId, slots[0].sessionId);
      for (const [reader, { code, message }] of Object.entries(await read(agent, slots[0])))
        assert.equal(code, undefined, `${reader} after a repair: ${how}: ${message}`);
      await agent.call("are you there?", slots[0]);
    } else {
      assert.equal(repaired.code, "STORE_CORRUPT", `${how}: ${repaired.message}`);
      assert.ok(repaired.hint, how);
    }
    assert.deepEqual(await read(agent, slots[1]), then[1], `the other session: ${how}`);
    await agent.call("more", slots[1]);
    const listed = await agent.listSessions("alice", { limit: 1_000 });
    assert.ok(listed.some(({ sessionId }) => sessionId === slots[1].sessionId), how);
    await agent.close();
    await store.close?.();
  }
  return counts;
}

async function read(agent, slot) {
  const readers = {
    history: () => agent.history(slot, { limit: 1_000 }),
    state: () => agent.getAgentState(slot),
    branches: () => agent.branches(slot),
    session: () => agent.session(slot),
    export: () => agent.exportSession(slot),
    search: async () => (await agent.search("two", { userId: slot.userId, sessionId: slot.sessionId })).map((hit) => hit.messageId).sort(),
  };
  const found = {};
  for (const [name, reader] of Object.entries(readers)) {
    const { value, code, message } = await ended(reader());
    found[name] = { text: JSON.stringify(value), code, message };
  }
  return found;
}

const ended = (promise) =>
  Promise.resolve(promise).then(
    (value) => ({ value }),
    ({ code, message, hint }) => ({ code: code ?? "none", message, hint }),
  );
