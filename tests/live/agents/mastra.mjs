// Runs Mastra against the scripted endpoint, which also takes the spans that its exporter sends.
// mastra.mjs URL (plain|stream)
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The packages are not next to this file.
const require = createRequire(pathToFileURL(process.env.NODE_MODULES + '/').href);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Mastra } = await load('@mastra/core');
const { Agent } = await load('@mastra/core/agent');
const { createTool } = await load('@mastra/core/tools');
const { OtelExporter } = await load('@mastra/otel-exporter');
const { createOpenAI } = await load('@ai-sdk/openai');
const { z } = await load('zod');

const [url, mode] = process.argv.slice(2);
const endpoint = `${url.replace(/\/v1$/, '')}/own+mastra.${mode}/v1/traces`;
const exporter = new OtelExporter({ provider: { custom: { endpoint, protocol: 'http/json' } } });
const number = z.number();
const tool = (id, inputSchema, run) => createTool({ id, description: id, inputSchema, execute: async ({ context }) => run(context) });
const tools = {
  add: tool('add', z.object({ a: number, b: number }), ({ a, b }) => a + b),
  weather: tool('weather', z.object({ city: z.string() }), ({ city }) => ({ Oslo: '4 degrees', Rome: '18 degrees' })[city]),
  lookup: tool('lookup', z.object({ name: z.string() }), () => 7),
  read_mail: tool('read_mail', z.object({ person: number, unread: z.boolean() }), ({ person }) => `from ${person}: see you at noon`),
  divide: tool('divide', z.object({ a: number, b: number }), () => {
    throw new Error('division by zero');
  }),
};
const helper = new Agent({ name: 'helper', instructions: 'Help.', model: createOpenAI({ baseURL: url, apiKey: 'none' }).chat('gpt-4o-mini'), tools });
const mastra = new Mastra({
  agents: { helper },
  logger: false,
  telemetry: { enabled: false },
  observability: { configs: { otel: { serviceName: 'karat', exporters: [exporter] } } },
});
const tasks = {
  one: 'What do 2 and 3 make?',
  parallel: 'How warm are Oslo and Rome?',
  sequence: 'Which mail did Ana write?',
  none: 'Please say hello.',
  failing: 'Divide 1 by 0.',
};
for (const [task, prompt] of Object.entries(tasks)) {
  const options = { maxSteps: 5, tracingOptions: { metadata: { 'karat.task': task } } };
  const agent = mastra.getAgent('helper');
  if (mode === 'stream') await (await agent.stream(prompt, options)).text;
  else await agent.generate(prompt, options);
}
await new Promise((done) => setTimeout(done, 1000));
await mastra.shutdown?.();
await exporter.shutdown();
process.exit(0);
