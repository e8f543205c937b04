import { writeFileSync } from 'node:fs';
import { settingsDocument } from './settings-document.ts';

writeFileSync(new URL('../../infra/SETTINGS.md', import.meta.url), settingsDocument());
