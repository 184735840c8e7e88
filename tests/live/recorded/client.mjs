// The client of the official SDK (npm), with `karat server record` in the place of the server:
// `client.mjs SCRIPT.json` with {"command": [...], "requests": [{"tool" | "resource" | "prompt", "input"}]}.
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const { command, requests } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const [program, ...args] = command;
const transport = new StdioClientTransport({ command: program, args, env: process.env, stderr: 'inherit' });
const client = new Client({ name: 'recorded', version: '1.0.0' }, { capabilities: {} });
await client.connect(transport);
await client.listTools();
for (const { tool, resource, prompt, input } of requests) {
  if (tool) await client.callTool({ name: tool, arguments: input ?? {} });
  if (resource) await client.readResource({ uri: resource });
  if (prompt) await client.getPrompt({ name: prompt, arguments: input ?? {} });
}
await client.close();
