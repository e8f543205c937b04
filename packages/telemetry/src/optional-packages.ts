/**
 * Imports packages that an install of `@hopline/agent` leaves out. `use`: what they are for, after "the packages of OpenTelemetry that". Rejects
 * with one sentence if one of them is absent.
 */
export async function importOptional<T>(use: string, names: readonly string[], load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const install = names.map(name => `@opentelemetry/${name}`).join(' ');
    throw new Error(`the packages of OpenTelemetry that ${use} are not installed: npm install ${install}`, { cause: error });
  }
}
