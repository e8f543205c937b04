import type { FastifyReply, FastifyRequest } from 'fastify';

/** The page may not load or run anything. */
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  vary: 'accept',
};

/** Whether a person opened the address of the server in a browser: only browsers ask for HTML. */
export function isForBrowser({ method, raw, headers }: FastifyRequest): boolean {
  return method === 'GET' && /^\/(?:\?|$)/.test(raw.url ?? '') && /\btext\/html\b/.test(headers.accept ?? '');
}

/** A page that describes the server and links to its other pages. */
export function sendBrowserPage(reply: FastifyReply, consoleUrl: string | undefined): FastifyReply {
  const look =
    consoleUrl === undefined
      ? 'The console of Hopline, a web page that uses this server, has its own address.'
      : `Tasks and their time lines: <a href="${escaped(consoleUrl)}">the console</a>.`;
  return reply.headers(HEADERS).send(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Hopline</title>
<h1>Hopline</h1>
<p>This is the address for clients of A2A: they send JSON-RPC with POST.</p>
<p>${look}</p>
<p>For clients: <a href="/.well-known/agent-card.json">the agent card</a>.</p>
</html>
`);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
