import { createServer } from 'node:http';
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

/**
 * An MCP server of the official SDK, of revision 2026-07-28 and the earlier ones, whose tools ask. With `http` it listens on the port that it prints, else it
 * uses stdio.
 */
const calls = { waiting: 0, canceled: 0 };

function factory(): McpServer {
  // Behaves like a server that signs its states with a key of its process.
  const verify = (state: string) => {
    if (state.startsWith('signed ') && state !== `signed ${process.pid}`) throw new Error('the state has another signature');
    return state;
  };
  const server = new McpServer({ name: 'asking', version: '1' }, { capabilities: { tools: {} }, requestState: { verify } });
  const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });
  const form = (name: string, type: 'string' | 'integer') =>
    ({ type: 'object', properties: { [name]: { type } }, required: [name] }) as { type: 'object'; properties: object } as never;

  server.registerTool('book', { description: 'Asks twice' }, async ({ mcpReq: { inputResponses, requestState } }) => {
    const state = requestState<string>();
    const [answer] = Object.values(inputResponses ?? {}) as { action: string; content?: Record<string, unknown> }[];
    if (answer !== undefined && answer.action !== 'accept') return text(`not booked: ${answer.action}`);
    if (answer === undefined)
      return inputRequired({
        inputRequests: { city: inputRequired.elicit({ message: 'Which city?', requestedSchema: form('city', 'string') }) },
        requestState: 'asked for the city',
      });
    if (state === 'asked for the city')
      return inputRequired({
        inputRequests: {
          nights: inputRequired.elicit({ message: 'How many nights?', requestedSchema: form('nights', 'integer') }),
        },
        requestState: `in ${answer.content?.city}`,
      });
    return text(`booked ${answer.content?.nights} nights ${state}`);
  });
  server.registerTool('both', { description: 'Asks two questions at once' }, async ({ mcpReq: { inputResponses } }) => {
    if (inputResponses !== undefined) return text(JSON.stringify(inputResponses));
    return inputRequired({
      inputRequests: {
        first: inputRequired.elicit({ message: 'First?', requestedSchema: form('first', 'string') }),
        second: inputRequired.elicit({ message: 'Second?', requestedSchema: form('second', 'string') }),
      },
    });
  });
  server.registerTool(
    'signed',
    { description: 'Refuses the states of another process' },
    async ({ mcpReq: { inputResponses } }) => {
      const { first, second } = (inputResponses ?? {}) as Record<string, { content?: Record<string, unknown> }>;
      if (second !== undefined) return text(JSON.stringify(second.content));
      const name = first === undefined ? 'first' : 'second';
      return inputRequired({
        inputRequests: { [name]: inputRequired.elicit({ message: `${name}?`, requestedSchema: form(name, 'string') }) },
        requestState: `signed ${process.pid}`,
      });
    },
  );
  server.registerTool('sample', { description: 'Needs a model' }, async () =>
    inputRequired({
      inputRequests: {
        model: inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 5 }),
      },
    }),
  );
  server.registerTool('open_page', { description: 'Needs a page' }, async () =>
    inputRequired({ inputRequests: { page: inputRequired.elicitUrl({ message: 'Log in', url: 'https://x.test/' }) } }),
  );
  server.registerTool('wait', { description: 'Ends when it is canceled' }, async ({ mcpReq: { signal } }) => {
    calls.waiting += 1;
    await new Promise(resolve => signal.addEventListener('abort', resolve));
    calls.canceled += 1;
    return text('canceled');
  });
  server.registerTool('calls', { description: 'Counts the calls of wait' }, async () => text(JSON.stringify(calls)));
  server.registerTool('ok', { description: 'Answers' }, async () => text('fine'));
  return server;
}

if (process.argv.includes('http')) {
  const { fetch: handle } = createMcpHandler(factory);
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)] as [string, string]);
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const init = { method: request.method ?? 'GET', headers, signal: gone.signal, ...(body.length > 0 && { body }) };
    const answer = await handle(new Request(`http://localhost${request.url}`, init));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  });
  server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as { port: number }).port}\n`));
} else {
  serveStdio(factory);
}
