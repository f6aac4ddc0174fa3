// Secrets of a model's requests, in what its provider answers: errors, replies, and what is stored of them.
import { story } from "../support/project.mjs";

/** How a text can be written, so that a person or a program reads it as before. */
const WRITINGS = {
  plain: (text) => text,
  url: (text) => encodeURIComponent(text),
  "url, every letter": (text) => [...text].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join(""),
  base64: (text) => btoa(text),
  "base64 inside": (text) => btoa(`xy${text}z`),
  "base64 for URLs": (text) => btoa(text).replaceAll("+", "-").replaceAll("/", "_"),
  html: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("/", "&#x2F;").replaceAll("+", "&#43;").replaceAll("=", "&equals;"),
  "html, every letter": (text) => [...text].map((letter) => `&#${letter.charCodeAt(0)};`).join(""),
  "html, hex": (text) => [...text].map((letter) => `&#x${letter.charCodeAt(0).toString(16).toUpperCase()};`).join(""),
  unicode: (text) => [...text].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
  "unicode of signs": (text) => text.replace(/[^a-z0-9]/gi, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0").toUpperCase()}`),
  hex: (text) => [...text].map((letter) => `\\x${letter.charCodeAt(0).toString(16)}`).join(""),
  json: (text) => JSON.stringify(text).slice(1, -1),
  "json in json": (text) => JSON.stringify(JSON.stringify(text)).slice(3, -3),
  "slashes of PHP": (text) => text.replaceAll("/", "\\/"),
  "html in json of Go": (text) => text.replaceAll("&", "&amp;").replaceAll("/", "&#x2F;").replaceAll("&", "\\u0026"),
  "url in html": (text) => encodeURIComponent(text).replaceAll("%", "&#37;"),
};

// X-06, M-18
story(
  "a secret is redacted from errors and replies in each writing, whole and cut at every byte, and nothing else is",
  async ({ assert }, writings) => {
    const { Secrets } = await import(new URL("host/secrets.js", import.meta.resolve("lockgate/package.json").replace("package.json", "dist/")).href);
    for (const key of ["sk-canary/KEY+9=3&x<y>\"z", "a1b2c3d", "pässwörd-9%2F", "back\\slash-1"]) {
      const isAscii = /^[\x20-\x7e]*$/.test(key);
      const secrets = new Secrets();
      secrets.add(key);
      for (const [name, source] of Object.entries(writings)) {
        if (!isAscii && !/^(plain|json|url)$/.test(name)) continue;
        const write = (0, eval)(source);
        if (key.length < 8 && /inside|URLs/.test(name)) continue;
        const text = `before ${write(key)} behind, ${key.slice(0, -1)} is not whole`;
        const clean = secrets.text(text);
        assert.match(clean, /^before \S*\[redacted\]\S* behind, /, `${name}: ${clean}`);
        assert.ok(!clean.includes(write(key)) && clean.includes(`${key.slice(0, -1)} is not whole`), `${name}: ${clean}`);
        const bytes = new TextEncoder().encode(text);
        const read = (pieces) => {
          const filter = secrets.filter();
          return [...pieces.map((piece) => filter.push(piece)), filter.end()].map((piece) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(piece, { stream: false })).join("");
        };
        if (isAscii) for (let at = 0; at <= bytes.length; at++) assert.equal(read([bytes.slice(0, at), bytes.slice(at)]), clean, `${name} cut at ${at}`);
        if (isAscii) assert.equal(read([...bytes].map((byte) => Uint8Array.of(byte))), clean, name);
      }
      assert.equal(secrets.text("a plain sentence with 100% & \\more, sk-canary, a1b2c3 and p%C3%A4ss"), "a plain sentence with 100% & \\more, sk-canary, a1b2c3 and p%C3%A4ss");
    }
  },
  Object.fromEntries(Object.entries(WRITINGS).map(([name, write]) => [name, String(write)])),
);

// X-06, M-18
story(
  "secrets of headers and of the URL stay known however often the key changes, and the keys that are remembered are bounded",
  async ({ createAgent, openProvider, openai, rejection, assert }) => {
    const echo = ({ path, headers }) => ({
      status: 400,
      headers: { "x-echo": headers.authorization },
      body: JSON.stringify({ error: { message: `no: ${path} ${headers["x-team-token"]} ${headers.cookie} ${headers.authorization} ${headers["x-plain"]}` } }),
    });
    const provider = await openProvider(echo);
    let n = 0;
    const model = openai({
      model: "m",
      baseUrl: `${provider.url}/v1?api-key=q1w2e3r&sig=abc%2Fdef%2Bg`,
      apiKey: () => `canary-key-${n++}`,
      headers: { "x-team-token": "t0ken-7", cookie: "session=s3ss10n-id; theme=dark", "x-plain": "a-longer-value" },
    });
    const agent = await createAgent({ name: "helper", model, retries: { attempts: 1 } });
    for (let call = 0; call < 100; call++) {
      const { message } = await rejection(agent.call("Hello", { sessionId: `s${call}` }));
      assert.match(message, /refuses the request \(400\): no: /);
      assert.doesNotMatch(message, /q1w2e3r|abc|def|t0ken|s3ss10n|canary-key|a-longer-value/, `call ${call}`);
    }
    assert.equal(n, 100);
    await provider.close();
    const { Secrets } = await import(new URL("host/secrets.js", import.meta.resolve("lockgate/package.json").replace("package.json", "dist/")).href);
    const secrets = new Secrets();
    secrets.keep("the-fixed-one");
    for (let key = 0; key < 10_000; key++) secrets.add(`canary-key-${key}!`);
    const text = Array.from({ length: 10_000 }, (_, key) => `canary-key-${key}!`).join(" ");
    const left = secrets.text(`${text} the-fixed-one`).split(" ");
    assert.equal(left.filter((word) => word === "[redacted]").length, 64 + 1, "the newest 64 keys and the fixed value");
    assert.equal(left.at(-1), "[redacted]");
  },
);

// X-06, M-18
story(
  "a request keeps its own key in mind while hundreds of newer keys are used",
  async ({ createAgent, openProvider, openai, signpost, rejection, assert }) => {
    const [reached, gate] = [signpost(), signpost()];
    let asked = 0;
    const provider = await openProvider(async ({ headers }) => {
      if (asked++ > 0) return { status: 400 };
      reached.pass();
      await gate.passed;
      return { status: 400, body: JSON.stringify({ error: { message: `bad key ${headers.authorization}` } }) };
    });
    let n = 0;
    const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: provider.url, apiKey: () => `canary-key-${n++}!` }), retries: { attempts: 1 } });
    const first = rejection(agent.call("Hello", { sessionId: "first" }));
    await reached.passed;
    await Promise.all(Array.from({ length: 200 }, (_, call) => rejection(agent.call("Hello", { sessionId: `s${call}` }))));
    gate.pass();
    assert.match((await first).message, /bad key Bearer \[redacted\]$/);
    await provider.close();
  },
);

// X-06, M-18
story(
  "a key that a model says in many deltas is in no event, error, partial answer or record, in every dialect",
  async ({ createAgent, mapStore, tool, openProvider, speak, sse, rejection, readAll, assert, ...lockgate }) => {
    const key = "sk-canary/KEY+9";
    const ends = {
      openai: { finish: { choices: [{ delta: { content: "" }, finish_reason: null }] } },
      anthropic: { finish: { type: "ping" } },
      gemini: { finish: { candidates: [{ content: { parts: [] } }] } },
    };
    for (const dialect of ["openai", "anthropic", "gemini"]) {
      for (const size of [1, 3, 7]) {
        const letters = (text) => text.match(new RegExp(`.{1,${size}}`, "gs"));
        // speak sends words: so each piece of the key becomes a word, and the space is cut out again.
        const split = (text) => speak[dialect]({ text: letters(text).map((piece) => piece.replaceAll(" ", "~")).join(" ") }).map((part) => part.replace(/ "/g, '"').replaceAll("~", " "));
        const said = split(`My key is ${key}, yours is sk-other, as html sk-canary&#x2F;KEY&#43;9. Bye s`);
        const broken = split(`It is ${key} and`).slice(0, -1).filter((part) => !/finish_reason":"|stop_reason|message_stop|finishReason|DONE/.test(part));
        const provider = await openProvider([
          { body: said },
          { body: broken },
          { body: speak[dialect]({ calls: [{ id: "c1", name: "note", input: { text: key } }] }).flatMap((part) => [part, ...sse([ends[dialect].finish])]) },
          { body: speak[dialect]({ text: "Done." }) },
        ]);
        const store = mapStore();
        const noted = [];
        const note = tool({ name: "note", description: "n", inputSchema: { type: "object" }, execute: ({ text }) => void noted.push(text) });
        const model = lockgate[dialect]({ model: "m", baseUrl: provider.url, apiKey: key });
        const agent = await createAgent({ name: "helper", store, model, tools: [note], checkpointMs: 1 });
        const events = await readAll(agent.stream("Say it", { sessionId: "s" }));
        assert.equal(events.at(-1).reply?.text, "My key is [redacted], yours is sk-other, as html [redacted]. Bye s", `${dialect} ${size} ${JSON.stringify(events.at(-1))}`);
        const streamed = events.filter(({ type }) => type === "text-delta").map(({ delta }) => delta).join("");
        assert.equal(streamed, events.at(-1).reply.text);
        const error = await rejection(agent.call("Say it again", { sessionId: "s" }));
        assert.equal(error.code, "MODEL_TRUNCATED");
        assert.match(JSON.stringify(error.partial), /It is \[redacted\]/);
        const more = await readAll(agent.stream("Note it", { sessionId: "s" }));
        assert.deepEqual(noted, ["[redacted]"]);
        const records = (await store.list("")).map(({ value }) => new TextDecoder().decode(value)).join("\n");
        assert.match(records, /My key is \[redacted\]/);
        for (const text of [JSON.stringify(events), JSON.stringify(more), JSON.stringify(error.partial), String(error.stack), records, JSON.stringify(await agent.history({ sessionId: "s" }))]) {
          assert.ok(!text.includes(key) && !text.includes("canary"), `${dialect} ${size}: ${text.slice(Math.max(0, text.indexOf("canary") - 200), text.indexOf("canary") + 100)}`);
        }
        await provider.close();
      }
    }
  },
);

// M-18
story(
  "deltas that may begin with a secret wait only for the next delta, and arrive in order",
  async ({ assert }) => {
    const { Secrets } = await import(new URL("host/secrets.js", import.meta.resolve("lockgate/package.json").replace("package.json", "dist/")).href);
    const secrets = new Secrets();
    secrets.add("sk-canary-1");
    const frame = (content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
    const read = () => {
      const filter = secrets.filter();
      return { push: (text) => new TextDecoder().decode(filter.push(new TextEncoder().encode(text))), end: () => new TextDecoder().decode(filter.end()) };
    };
    const one = read();
    assert.equal(one.push(frame("plain text")), frame("plain text"), "a delta that ends with no beginning of a secret is passed on");
    assert.equal(one.push(frame("this")), "", "the s may begin a secret");
    assert.equal(one.push(": ping\n\n"), "");
    assert.equal(one.push(frame(" is")), `${frame("this")}: ping\n\n`, "the next delta decides");
    assert.equal(one.push(frame(" it")), frame(" is") + frame(" it"));
    // A tool call, the finish reason and the end of the stream end the text.
    for (const [last, isData] of [[{ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: "{" } }] } }] }, true], [{ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, true], ["[DONE]", false]]) {
      const two = read();
      assert.equal(two.push(frame("thus")), "");
      const end = `data: ${isData ? JSON.stringify(last) : last}\n\n`;
      assert.equal(two.push(end), frame("thus") + end);
    }
    const three = read();
    three.push(frame("thus"));
    assert.equal(three.end(), frame("thus"));
    // What waits is bounded, and so is a line.
    const four = read();
    let [held, out] = [frame("thus"), four.push(frame("thus"))];
    for (let n = 0; n < 100_000 && out === ""; n++) {
      held += ": ping\n";
      out += four.push(": ping\n");
    }
    assert.equal(out, held);
    assert.ok(held.length < 100_000, "the bytes that wait are bounded");
    const five = read();
    const long = `data: {"choices":[{"delta":{"content":"${"x".repeat(400_000)}`;
    assert.ok(five.push(long).length >= 400_000, "a very long line is passed on before its end");
    assert.equal(five.push('"}}]}\n'), '"}}]}\n');
  },
);

// M-18
story(
  "placeholders of local servers are no secrets, and a word of a scheme is none",
  async ({ createAgent, openProvider, speak, openai, assert }) => {
    const said = "ollama and lm-studio want a Bearer of no-key, none at all.";
    for (const apiKey of ["ollama", "lm-studio", "none", "x", "EMPTY"]) {
      const provider = await openProvider([{ body: speak.openai({ text: said }) }]);
      const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: provider.url, apiKey, headers: { authorization: `Bearer ${apiKey}` } }) });
      assert.equal((await agent.call("Hello", { sessionId: "s" })).text, said);
      await provider.close();
    }
  },
);
