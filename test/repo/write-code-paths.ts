import { writeFileSync } from 'node:fs';
import { MESSAGE_PATH, TOKEN_PATH } from './code-paths.ts';
import { CODE_PATHS_DOCUMENT, withSection } from './code-paths-document.ts';
import { read } from './source-files.ts';

const text = [TOKEN_PATH, MESSAGE_PATH].reduce(withSection, read(CODE_PATHS_DOCUMENT));
writeFileSync(new URL(`../../${CODE_PATHS_DOCUMENT}`, import.meta.url), text);
