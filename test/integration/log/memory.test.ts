import { createMemoryLog } from '@hopline/log/memory';
import {
  CONTRACT_ACK_WAIT_MS,
  CONTRACT_ATTEMPTS_MAX,
  CONTRACT_FOLLOW_BUFFER_RECORDS_MAX,
  CONTRACT_REQUEUES_MAX,
  CONTRACT_ROLE_ITEMS_MAX,
  CONTRACT_SHARDS,
  CONTRACT_TENANT_ITEMS_MAX,
  describeLogContract,
} from './contract/contract.ts';

describeLogContract('memory', async ({ tailCheckMs }) => {
  const log = createMemoryLog({
    shards: CONTRACT_SHARDS,
    attemptsMax: CONTRACT_ATTEMPTS_MAX,
    requeuesMax: CONTRACT_REQUEUES_MAX,
    roleItemsMax: CONTRACT_ROLE_ITEMS_MAX,
    tenantItemsMax: CONTRACT_TENANT_ITEMS_MAX,
    ackWaitMs: CONTRACT_ACK_WAIT_MS,
    follow: { tailCheckMs, bufferRecordsMax: CONTRACT_FOLLOW_BUFFER_RECORDS_MAX },
  });
  return {
    log,
    another: async () => log.another(),
    loseAcks: count => {
      log.faults.loseAcks = count;
    },
    loseLive: count => {
      log.faults.loseLive = count;
    },
    cut: async during => {
      log.faults.loseLive = Number.POSITIVE_INFINITY;
      await during();
      log.faults.loseLive = 0;
      log.reconnect();
    },
    expire: async (what, taskId, below) => log.expire(what, taskId, below),
    lose: async (_taskId, lastSeq) => log.loseFacts(lastSeq),
    garbage: async (what, taskId) => void log.garbage(what, taskId),
    readersLeft: async () => 0,
    close: () => log.close(),
  };
});
