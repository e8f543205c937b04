import { createServer } from 'node:http';
import { natsMetrics } from './nats-metrics.ts';

/**
 * Serves the metrics of one nats-server at /metrics. It runs in a container next to the server, in the image of Hopline. Arguments: port
 * and monitoring URL.
 */
const [port, monitorUrl] = process.argv.slice(2);
if (port === undefined || monitorUrl === undefined)
  throw new Error('nats-metrics PORT URL: the port to listen on, the monitoring URL of NATS');

const server = createServer(async (request, response) => {
  if (request.url !== '/metrics') return void response.writeHead(404).end();
  try {
    const text = await natsMetrics(monitorUrl);
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(text);
  } catch (error) {
    // Prometheus shows the server as down: `up` is 0.
    response.writeHead(503).end(error instanceof Error ? error.message : 'NATS does not answer');
  }
});
server.listen(Number(port));
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => server.close(() => process.exit()));
