/**
 * The first `major.minor[.patch]` in a text such as `nats-server: v2.15.2` or `v26.10.0`.
 * @param {string} text
 * @returns {string | null} "2.15.2", or null
 */
export function parseVersion(text) {
  const match = /(?<![\d.])(\d+)\.(\d+)(?:\.(\d+))?/.exec(text);
  return match ? `${match[1]}.${match[2]}.${match[3] ?? '0'}` : null;
}

/**
 * @param {string} version @param {string} minimum both `major.minor.patch`
 * @returns {boolean}
 */
export function isAtLeast(version, minimum) {
  return compareVersions(version, minimum) >= 0;
}

/**
 * Numeric order: 2.9.10 is greater than 2.9.4.
 * @param {string} left @param {string} right @returns {number} negative, zero or positive
 */
export function compareVersions(left, right) {
  const a = left.split('.').map(Number);
  const b = right.split('.').map(Number);
  for (let i = 0; i < 3; i += 1) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
