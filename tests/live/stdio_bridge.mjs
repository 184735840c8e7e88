// A server over stdio, reached over HTTP: the official conformance suite knows servers by their address alone.
//
//   node stdio_bridge.mjs COMMAND ARGUMENT…
//
// Prints its address on 127.0.0.1. Each `initialize` starts the program anew and opens a session; requests
// without a session (those of revisions without a handshake) share one program. Messages pass unchanged but for
// their ids, which are those of the bridge on the way. Ends when stdin ends, and with it every program.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const [command, ...words] = process.argv.slice(2);
const sessions = new Map();

/** The program behind a session. */
function start() {
  const child = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map();
  let count = 0;
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    const asked = waiting.get(message.id);
    if (message.method !== undefined || asked === undefined) return; // nothing is asked of the client
    waiting.delete(message.id);
    asked.answer({ ...message, id: asked.id });
  });
  child.on("exit", () => { for (const { id, answer } of waiting.values()) answer({ jsonrpc: "2.0", id, error: { code: -32000, message: "the program ended" } }); });
  const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  const request = (message) => new Promise((answer) => {
    const id = (count += 1);
    waiting.set(id, { id: message.id, answer });
    send({ ...message, id });
  });
  return { send, request, end: () => child.stdin.end() };
}

/** Where an HTTP server of this protocol would answer an error with another status. */
const status = ({ error }, stateless) => (stateless && error ? ({ "-32601": 404 }[error.code] ?? 400) : 200);

const server = createServer(async (request, response) => {
  const end = (code, body, headers = {}) => {
    response.writeHead(code, { "content-type": "application/json", ...headers });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  };
  const hosts = [`127.0.0.1:${server.address().port}`, `localhost:${server.address().port}`];
  if (!hosts.includes(request.headers.host)) return end(403);
  const known = request.headers["mcp-session-id"];
  if (request.method === "DELETE" && sessions.has(known)) {
    sessions.get(known).end();
    sessions.delete(known);
    return end(200);
  }
  if (request.method !== "POST") return end(405, undefined, { allow: "POST, DELETE" });
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  const message = JSON.parse(text);
  const headers = {};
  let session = sessions.get(known ?? "shared");
  // One that names a revision without a handshake is the server's to refuse.
  if (message.method === "initialize" && message.params?._meta === undefined) {
    const id = randomUUID();
    session = start();
    sessions.set(id, session);
    headers["mcp-session-id"] = id;
  } else if (session === undefined) {
    if (known !== undefined) return end(404);
    sessions.set("shared", (session = start()));
  }
  if (message.id === undefined || message.method === undefined) {
    session.send(message);
    return end(202);
  }
  const answer = await session.request(message);
  end(status(answer, known === undefined && headers["mcp-session-id"] === undefined), answer, headers);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
process.stdin.resume().on("end", () => {
  for (const session of sessions.values()) session.end();
  process.exit();
});
