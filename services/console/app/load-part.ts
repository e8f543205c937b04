/**
 * A part of the page that is loaded when it is needed. Its file has another name in each version, so a tab that was open during an update of the console
 * does not find it. The browser's own message does not help its reader.
 */
export async function loadPart<T>(part: Promise<T>): Promise<T> {
  try {
    return await part;
  } catch (cause) {
    throw new Error('A part of this page cannot be loaded. If the console was updated, reload the page.', { cause });
  }
}
