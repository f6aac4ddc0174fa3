// Measures one thing of one engine, in a process of its own: `node --expose-gc benches/measure.mjs call lockgate '{…}'`.
// Its last printed line is the result, after `@@`, or the error, after `@!`.

const [what, engine, settings = "{}"] = process.argv.slice(2);
const end = (line, code) => process.stdout.write(`\n${line}\n`, () => process.exit(code));
try {
  const { measure } = await import(`./measures/${what}.mjs`);
  end(`@@${JSON.stringify(await measure(engine, JSON.parse(settings)))}`, 0);
} catch (error) {
  console.error(error);
  end(`@!${String(error?.message ?? error).trim().split("\n")[0]}`, 1);
}
