// Runs the Vercel AI SDK against the scripted endpoint and writes the spans that it exports, as OTLP JSON.
// vercel.mjs URL (plain|stream) FOLDER; with OTLP=URL the spans go there as well, over HTTP as JSON.
import { appendFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The packages are not next to this file.
const require = createRequire(pathToFileURL(process.env.NODE_MODULES + '/').href);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { generateText, streamText, tool, stepCountIs } = await load('ai');
const { createOpenAI } = await load('@ai-sdk/openai');
const { z } = await load('zod');
const { trace } = require('@opentelemetry/api');
const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node');
const { SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base');
const { JsonTraceSerializer } = require('@opentelemetry/otlp-transformer');
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http');

const [url, mode, folder] = process.argv.slice(2);
const file = `${folder}/own+vercel-ai.${mode}.spans.jsonl`;
writeFileSync(file, '');
const spanProcessors = [
  new SimpleSpanProcessor({
    export(spans, done) {
      appendFileSync(file, Buffer.from(JsonTraceSerializer.serializeRequest(spans)).toString() + '\n');
      done({ code: 0 });
    },
    shutdown: async () => {},
  }),
];
const held = [];
if (process.env.OTLP) {
  const hold = { export: (spans, done) => done({ code: held.push(...spans) && 0 }), shutdown: async () => {} };
  spanProcessors.push(new SimpleSpanProcessor(hold));
}
const provider = new NodeTracerProvider({ spanProcessors });
provider.register();

const number = z.number();
const tools = {
  add: tool({ description: 'Adds.', inputSchema: z.object({ a: number, b: number }), execute: async ({ a, b }) => a + b }),
  weather: tool({
    description: 'Says how warm it is.',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => ({ Oslo: '4 degrees', Rome: '18 degrees' })[city],
  }),
  lookup: tool({ description: 'Finds.', inputSchema: z.object({ name: z.string() }), execute: async () => 7 }),
  read_mail: tool({
    description: 'Reads.',
    inputSchema: z.object({ person: number, unread: z.boolean() }),
    execute: async ({ person }) => `from ${person}: see you at noon`,
  }),
  divide: tool({
    description: 'Divides.',
    inputSchema: z.object({ a: number, b: number }),
    execute: async () => {
      throw new Error('division by zero');
    },
  }),
};
const tasks = {
  one: 'What do 2 and 3 make?',
  parallel: 'How warm are Oslo and Rome?',
  sequence: 'Which mail did Ana write?',
  none: 'Please say hello.',
  failing: 'Divide 1 by 0.',
};
const model = createOpenAI({ baseURL: url, apiKey: 'none' }).chat('gpt-4o-mini');
const tracer = trace.getTracer('karat-test');
for (const [task, prompt] of Object.entries(tasks)) {
  await tracer.startActiveSpan('task', { attributes: { 'karat.task': task } }, async (span) => {
    const content = process.env.CONTENT !== 'off';
    const telemetry = { isEnabled: true, recordInputs: content, recordOutputs: content };
    const options = { model, tools, prompt, stopWhen: stepCountIs(5), experimental_telemetry: telemetry };
    if (mode === 'stream') await streamText(options).text;
    else await generateText(options);
    span.end();
  });
}
await provider.forceFlush();
// All spans over HTTP: small batches, parents first or last as it comes, slowly, every third one twice.
if (held.length) {
  const exporter = new OTLPTraceExporter({ url: process.env.OTLP + '/v1/traces' });
  const mixed = held.map((_, at) => held[(at * 7) % held.length]);
  const spans = new Set(mixed).size === held.length ? mixed : held.reverse();
  const batches = [];
  for (let at = 0; at < spans.length; at += 2) batches.push(spans.slice(at, at + 2));
  for (const batch of [...batches, ...batches.filter((_, at) => at % 3 === 0)]) {
    const { code, error } = await new Promise((done) => exporter.export(batch, done));
    if (code) throw error;
    await new Promise((done) => setTimeout(done, 200));
  }
  await exporter.shutdown();
}
await provider.shutdown();
