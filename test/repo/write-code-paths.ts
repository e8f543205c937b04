import { writeFileSync } from 'node:fs';
import { MESSAGE_PATH, TOKEN_PATH } from './code-paths.ts';
import { withSection } from './code-paths-document.ts';
import { read } from './source-files.ts';

const text = [TOKEN_PATH, MESSAGE_PATH].reduce(withSection, read('ARCHITECTURE.md'));
writeFileSync(new URL('../../ARCHITECTURE.md', import.meta.url), text);
