import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogConflict } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { GenericContainer, getContainerRuntimeClient, ImageName, Wait } from 'testcontainers';

/** The image as deployed. Only a local image is used, nothing is pulled. */
const IMAGE = process.env.HOPLINE_NATS_IMAGE ?? 'nats:2.15.2';
const NATS_PORT = 4222;

async function skipReason(): Promise<string | undefined> {
  try {
    const { image } = await getContainerRuntimeClient();
    return (await image.exists(ImageName.fromString(IMAGE)))
      ? undefined
      : `no local image ${IMAGE} (HOPLINE_NATS_IMAGE names another)`;
  } catch {
    return 'no container engine';
  }
}

test('the log works on NATS in a container', async t => {
  // The reaper is another image that would be pulled; this test stops its container itself.
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true';
  const reason = await skipReason();
  if (reason) return t.skip(reason);
  const container = await new GenericContainer(IMAGE)
    .withCommand(['-js', '-sd', '/data'])
    .withTmpFs({ '/data': 'rw' })
    .withExposedPorts(NATS_PORT)
    // Waiting for the port needs a shell, which the image lacks.
    .withWaitStrategy(Wait.forLogMessage('Server is ready'))
    .start();
  try {
    const servers = `nats://${container.getHost()}:${container.getMappedPort(NATS_PORT)}`;
    const maxBytes = { inputs: 1e7, facts: 1e7, work: 1e6, keyValue: 1e6 };
    const log = await openJetStreamLog({ servers, name: 'container', maxBytes });
    await log.check();
    await log.messageIds.create('a', { taskId: 't', fingerprint: 'f' });
    await assert.rejects(log.messageIds.create('a', { taskId: 't', fingerprint: 'f' }), LogConflict);
    await log.close();
  } finally {
    await container.stop();
  }
});
