import { INSTALLATION as CHECKOUT, type Installation } from '../../../infra/local/launcher/installation.ts';
import { programOf } from './service-process.ts';

/** Replaces the launcher's module of this name in `spawnLauncher`. */
export const INSTALLATION: Installation = { ...CHECKOUT, programOf };
