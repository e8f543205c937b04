import { mkdirSync, writeFileSync } from 'node:fs';
import { contractDocument } from './contract-document.ts';

const target = new URL('../../docs/contract.md', import.meta.url);
mkdirSync(new URL('.', target), { recursive: true });
writeFileSync(target, contractDocument());
