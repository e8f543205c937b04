import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import { agentOfCard, cardUrls } from './find-endpoint.ts';

test('the card is looked for below the URL and at the root, at the new path and the old one [C-13]', () => {
  assert.deepEqual(cardUrls('http://a.test:81/x/?q=1#h'), [
    'http://a.test:81/x/.well-known/agent-card.json',
    'http://a.test:81/x/.well-known/agent.json',
    'http://a.test:81/.well-known/agent-card.json',
    'http://a.test:81/.well-known/agent.json',
  ]);
  assert.equal(cardUrls('http://a.test').length, 2);
});

test('the path of the card is used if its host matches; otherwise the configured URL stays', () => {
  const url = (cardUrl: string, configured: string) =>
    agentOfCard({ name: 'n', url: cardUrl }, `${configured}/.well-known/agent.json`, configured).url;
  assert.equal(url('http://a.test/rpc', 'http://a.test'), 'http://a.test/rpc');
  assert.equal(url('/rpc?x=1', 'http://a.test'), 'http://a.test/rpc?x=1');
  for (const host of ['0.0.0.0', 'localhost', '127.0.0.1', '[::]', '[::1]']) {
    assert.equal(url(`http://${host}:8001/a2a`, 'http://agent.inner:8001'), 'http://agent.inner:8001/a2a', host);
  }
  assert.equal(
    url('http://metadata.internal/steal', 'http://a.test/agent'),
    'http://a.test/agent',
    'a card cannot direct requests to another server',
  );
  assert.equal(url('http://a.test:9/rpc', 'http://a.test/agent'), 'http://a.test/agent');
  assert.equal(url('https://public.test/agent', 'http://inner:8001/'), 'http://inner:8001/');
});

test('a card without a supported interface is rejected', () => {
  assert.throws(() => agentOfCard({ name: 'n' }, 'http://a.test/', 'http://a.test/'), A2AError);
});
