import { writeFileSync } from 'node:fs';
import { REFERENCE } from './reference-documents.ts';

for (const [path, text] of Object.entries(REFERENCE)) writeFileSync(new URL(`../../${path}`, import.meta.url), await text());
