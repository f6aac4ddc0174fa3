// Stores with exactly one flaw, around a correct store. The rules must find each flaw.

/** Lets other tasks run. */
const turn = () => new Promise((resolve) => setImmediate(resolve));
const bytes = (text) => new TextEncoder().encode(text);
const user = (key) => key.split("/").slice(0, 2).join("/");
const trimmed = (prefix) => prefix.replace(/\/+$/, "");

/** Each flaw takes the correct store and the state that the stores of one maker share, and returns the changed methods. */
export const FLAWS = {
  "reads bytes as text": reading((it) => ({ ...it, value: bytes(new TextDecoder().decode(it.value)) })),
  "cuts values": reading((it) => ({ ...it, value: it.value.slice(0, 99) })),
  "forgets revisions": reading((it) => ({ ...it, revision: "" })),
  "makes up what is absent": getting((found) =>
    found.map((it) => it ?? { value: bytes(""), revision: "" }),
  ),
  "reads in its own order": getting((found) => [...found].reverse()),
  "reads every key once": getting((found, keys) =>
    found.map((it, index) => (keys.indexOf(keys[index]) === index ? it : null)),
  ),
  "reads at most 128 keys": getting((found) =>
    found.map((it, index) => (index < 128 ? it : null)),
  ),
  "takes empty for absent": (good) => ({
    get: async (keys) => (await good.get(keys)).map((it) => (it?.value.length ? it : null)),
    list: async (...args) => (await good.list(...args)).filter((it) => it.value.length),
  }),
  "remembers what it has read": (good) => {
    const read = new Map();
    const get = async (keys) => {
      const found = await good.get(keys);
      keys.forEach((key, index) => read.has(key) || read.set(key, found[index]));
      return keys.map((key) => read.get(key));
    };
    const commit = (batch) => {
      const { expect } = batch;
      const isKnown = expect && read.get(expect.key)?.revision === expect.revision;
      return good.commit(isKnown ? { ...batch, expect: undefined } : batch);
    };
    return { get, commit };
  },
  "hands out the bytes it keeps": (good) => {
    const kept = new Map();
    const own = (key, it) => {
      if (it && !kept.has(key)) kept.set(key, it);
      return it && kept.get(key);
    };
    return {
      get: async (keys) => (await good.get(keys)).map((it, index) => own(keys[index], it)),
      list: async (...args) =>
        (await good.list(...args)).map((it) => ({ key: it.key, ...own(it.key, it) })),
    };
  },
  "keeps the bytes it is given": (good) => {
    const given = new Map();
    return {
      commit: async (batch) => {
        for (const { key, value } of batch.put) given.set(key, value);
        return good.commit(batch);
      },
      get: async (keys) =>
        (await good.get(keys)).map((it, index) => it && { ...it, value: given.get(keys[index]) }),
    };
  },
  "cuts keys": naming((key) => key.slice(0, 255)),
  "takes keys that look alike for one": naming((key) => key.replace(/-[0-9a-f]{2}/g, "")),

  "lists backwards": listing((found) => [...found].reverse()),
  "sorts by parts": listing((found) =>
    [...found].sort((one, other) => {
      const [a, b] = [one, other].map(({ key }) => key.replaceAll("/", "\0"));
      return a < b ? -1 : 1;
    }),
  ),
  "lists too much": (good) => ({ list: (prefix, page) => good.list(trimmed(prefix), page) }),
  "lists without values": listing((found) => found.map((it) => ({ ...it, value: bytes("") }))),
  "takes prefixes for patterns": (good) => ({
    list: async (prefix, page) =>
      (await good.list("", page)).filter(({ key }) => new RegExp(`^${prefix}`).test(key)),
  }),
  "lists one user only": listing((found) =>
    found.filter(({ key }) => user(key) === user(found[0].key)),
  ),
  "lists from the start": (good) => ({
    list: (prefix, page) => good.list(prefix, { ...page, after: undefined }),
  }),
  "lists the key it goes on after": (good) => ({
    list: async (prefix, { after, ...page } = {}) => {
      const found = await good.list(prefix);
      return found.filter(({ key }) => after === undefined || key >= after).slice(0, page.limit);
    },
  }),
  "ignores limits": (good) => ({
    list: (prefix, page) => good.list(prefix, { ...page, limit: undefined }),
  }),
  "lists at most 1,000 records": listing((found) => found.slice(0, 1_000)),
  "does not know lists of keys only": listing((found, page) => (page?.keysOnly ? [] : found)),
  "lists what was removed": (good) => {
    const removed = [];
    return {
      commit: async (batch) => {
        const found = await good.get(batch.remove);
        found.forEach((it, index) => it && removed.push({ key: batch.remove[index], ...it }));
        return good.commit(batch);
      },
      list: async (...args) => [...(await good.list(...args)), ...removed],
    };
  },

  "stamps only what is new": committing(async (good, batch) => {
    const old = await good.get(batch.put.map(({ key }) => key));
    const answer = await good.commit(batch);
    for (const [index, each] of batch.put.entries()) {
      const { revision } = old[index] ?? batch;
      await good.commit({ revision, put: [each], remove: [] });
    }
    return answer;
  }),
  "keeps the first value": committing(async (good, batch) => {
    const old = await good.get(batch.put.map(({ key }) => key));
    const put = batch.put.map((it, index) => ({ ...it, value: old[index]?.value ?? it.value }));
    return good.commit({ ...batch, put });
  }),
  "never removes": changing((batch) => ({ ...batch, remove: [] })),
  "never removes prefixes": changing((batch) => ({ ...batch, removePrefix: [] })),
  "removes too much": changing((batch) => ({
    ...batch,
    removePrefix: batch.removePrefix?.map(trimmed),
  })),
  "removes at most 128 keys of a prefix": committing(async (good, batch) => {
    const remove = [...batch.remove];
    for (const prefix of batch.removePrefix ?? [])
      remove.push(...(await good.list(prefix, { limit: 128 })).map(({ key }) => key));
    return good.commit({ ...batch, remove, removePrefix: [] });
  }),
  "refuses to remove what is absent": committing(async (good, batch) =>
    (await good.get(batch.remove)).includes(null) ? "conflict" : good.commit(batch),
  ),
  "removes last": committing(async (good, batch) => {
    const answer = await good.commit(batch);
    if (answer === "ok") await good.commit({ ...batch, expect: undefined, put: [] });
    return answer;
  }),
  "puts at most 128 records": changing((batch) => ({ ...batch, put: batch.put.slice(0, 128) })),
  "refuses to replace": committing(async (good, batch) => {
    const [first] = batch.put;
    const isThere = first && !batch.expect && (await good.get([first.key]))[0] !== null;
    return isThere ? "conflict" : good.commit(batch);
  }),
  "ignores expectations": changing((batch) => ({ ...batch, expect: undefined })),
  "refuses what it finds": committing(async (good, batch) =>
    batch.expect?.revision ? "conflict" : good.commit(batch),
  ),
  "removes in spite of a conflict": committing(async (good, batch) => {
    const answer = await good.commit(batch);
    if (answer === "conflict") await good.commit({ ...batch, expect: undefined, put: [] });
    return answer;
  }),
  "puts in spite of a conflict": committing(async (good, batch) => {
    const answer = await good.commit(batch);
    if (answer === "conflict")
      await good.commit({ revision: batch.revision, put: batch.put, remove: [] });
    return answer;
  }),
  "compares the beginnings of revisions": trusting(
    (found, expected) => expected !== null && found?.startsWith(expected),
  ),
  "creates what it should find": trusting((found) => found === undefined),
  "expects only what it puts": trusting(
    (_found, _expected, { expect, put }) => !put.some(({ key }) => key === expect.key),
  ),
  "expects what was removed": (good) => {
    const last = new Map();
    return {
      commit: async (batch) => {
        for (const key of batch.remove) last.set(key, (await good.get([key]))[0]?.revision);
        const { expect } = batch;
        const wasThere = expect?.revision && last.get(expect.key) === expect.revision;
        return good.commit(wasThere ? { ...batch, expect: undefined } : batch);
      },
    };
  },
  "removes before it compares": committing(async (good, batch) => {
    await good.commit({ ...batch, expect: undefined, put: [] });
    return good.commit(batch);
  }),
  "compares long before it writes": committing(async (good, batch) => {
    const { expect } = batch;
    if (!expect) return good.commit(batch);
    const found = (await good.get([expect.key]))[0]?.revision ?? null;
    await turn();
    return found === expect.revision ? good.commit({ ...batch, expect: undefined }) : "conflict";
  }),
  "takes one commit at a time": (good) => {
    let isBusy = false;
    return {
      commit: async (batch) => {
        if (isBusy) return "conflict";
        isBusy = true;
        await turn();
        isBusy = false;
        return good.commit(batch);
      },
    };
  },
};

/** A maker of correct stores with this flaw. It can make several stores over the same records. */
export function flawed(good, flaw) {
  const { name } = good;
  const capabilities = { ...good.capabilities, shared: "host" };
  const { get, list, commit } = good;
  return { name, capabilities, get, list, commit, ...FLAWS[flaw]?.(good) };
}

function getting(change) {
  return (good) => ({ get: async (keys) => change(await good.get(keys), keys) });
}

function listing(change) {
  return (good) => ({
    list: async (prefix, page) => change(await good.list(prefix, page), page),
  });
}

function reading(change) {
  return (good) => ({
    get: async (keys) => (await good.get(keys)).map((it) => it && change(it)),
    list: async (...args) => (await good.list(...args)).map(change),
  });
}

function committing(commit) {
  return (good) => ({ commit: (batch) => commit(good, batch) });
}

function changing(change) {
  return committing((good, batch) => good.commit(change(batch)));
}

/** Treats an unmet expectation as met. */
function trusting(isFine) {
  return committing(async (good, batch) => {
    const { expect } = batch;
    if (!expect) return good.commit(batch);
    const found = (await good.get([expect.key]))[0]?.revision;
    const trusts = isFine(found, expect.revision, batch);
    return good.commit(trusts ? { ...batch, expect: undefined } : batch);
  });
}

function naming(rename) {
  return (good) => ({
    get: (keys) => good.get(keys.map(rename)),
    commit: (batch) =>
      good.commit({ ...batch, put: batch.put.map((it) => ({ ...it, key: rename(it.key) })) }),
  });
}
