/** The value of a command's option. Throws if it is not a whole number from 0. */
export function wholeNumber(option: string, value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`${option} must be a whole number, not ${value}`);
  return number;
}
