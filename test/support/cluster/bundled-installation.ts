import { INSTALLATION as CHECKOUT, type Installation } from '../../../infra/local/launcher/installation.ts';
import { programOf } from './service-process.ts';

/** Names of the services that start from their bundles, separated by commas. Default: all. */
const bundled = process.env.TEST_BUNDLED?.split(',');

/** Replaces the launcher's module of this name in `launcherProgram`. */
export const INSTALLATION: Installation = {
  ...CHECKOUT,
  programOf: service => (bundled?.includes(service) === false ? CHECKOUT.programOf(service) : programOf(service)),
};
