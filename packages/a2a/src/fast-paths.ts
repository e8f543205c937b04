let taken = true;

/**
 * Whether this process takes its fast paths: code that does the work of a library at a lower cost. docs/reference/fast-paths.md lists them.
 * Each stream checks this again, so that a test can compare both ways in one process.
 */
export function takesFastPaths(): boolean {
  return taken;
}

/** Called with HOPLINE_FAST_PATHS before a service starts. */
export function setFastPaths(isOn: boolean): void {
  taken = isOn;
}
