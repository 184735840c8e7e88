// An MCP server behind a login, and its authorisation server: packages from npm with as little as possible
// around them. `server.mjs FOLDER` prints one line of JSON with the addresses; the folder gets the private key
// of a client and, in `issued`, every secret that was issued, one on a line.
import { appendFileSync, writeFileSync } from 'node:fs';
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';

import express from 'express';
import { createRemoteJWKSet, exportJWK, jwtVerify } from 'jose';
import Provider from 'oidc-provider';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';

const folder = process.argv[2];
const SECONDS = Number(process.env.TOKEN_SECONDS ?? 4);

async function listening(handler) {
  const server = createServer(handler);
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return [server, `http://127.0.0.1:${server.address().port}`];
}

// The ports must be known before the handlers can be made.
let resourceHandler, issuerHandler;
const [, resource] = await listening((request, response) => resourceHandler(request, response));
const [, issuer] = await listening((request, response) => issuerHandler(request, response));
const mcp = `${resource}/mcp`;

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
const jwk = { ...(await exportJWK(publicKey)), alg: 'ES256', use: 'sig', kid: 'key' };

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'robot', client_secret: 'the-secret-of-the-robot', grant_types: ['client_credentials'],
      redirect_uris: [], response_types: [],
    },
    {
      client_id: 'signer', token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: 'ES256',
      jwks: { keys: [jwk] }, grant_types: ['client_credentials'], redirect_uris: [], response_types: [],
    },
    {
      client_id: 'screenless', token_endpoint_auth_method: 'none', application_type: 'native',
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
      redirect_uris: [], response_types: [],
    },
  ],
  features: {
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (context, indicator) => {
        if (indicator !== mcp) throw new Error(`there is no resource ${indicator}`);
        return { scope: 'tools:read tools:write', audience: mcp, accessTokenFormat: 'jwt', accessTokenTTL: SECONDS };
      },
    },
  },
  issueRefreshToken: (context, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: () => true,
  pkce: { required: () => true },
});
provider.on('grant.success', (context) => {
  const body = context.body ?? {};
  for (const key of ['access_token', 'refresh_token', 'id_token']) {
    if (body[key]) appendFileSync(join(folder, 'issued'), `${body[key]}\n`);
  }
  const sent = context.oidc.params ?? {};
  for (const key of ['code', 'code_verifier', 'client_secret', 'device_code']) {
    if (sent[key]) appendFileSync(join(folder, 'issued'), `${sent[key]}\n`);
  }
  appendFileSync(join(folder, 'grants'), `${sent.grant_type} ${sent.resource}\n`);
});
issuerHandler = provider.callback();

const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
const verifier = {
  async verifyAccessToken(token) {
    const { InvalidTokenError } = await import('@modelcontextprotocol/sdk/server/auth/errors.js');
    try {
      const { payload } = await jwtVerify(token, keys, { issuer, audience: mcp });
      return { token, clientId: payload.client_id, scopes: (payload.scope ?? '').split(' '), expiresAt: payload.exp };
    } catch (error) {
      throw new InvalidTokenError(error.message);
    }
  },
};
const app = express();
app.use(express.json());
app.get('/.well-known/oauth-protected-resource/mcp', (request, response) => {
  response.json({ resource: mcp, authorization_servers: [issuer], scopes_supported: ['tools:read'] });
});
const guard = requireBearerAuth({
  verifier, requiredScopes: ['tools:read'],
  resourceMetadataUrl: `${resource}/.well-known/oauth-protected-resource/mcp`,
});
app.post('/mcp', guard, async (request, response) => {
  const server = new McpServer({ name: 'guarded', version: '1.0.0' });
  server.registerTool('whoami', { description: 'Says the client and the header of the request.' }, () => ({
    content: [{ type: 'text', text: `${request.auth.clientId} sent ${request.headers.authorization}` }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
resourceHandler = app;
console.log(JSON.stringify({ mcp, issuer }));
