/** The key code of keys that an input method handles. */
const HANDLED = 229;

/**
 * Whether a key belongs to the word of an input method, as the Enter that ends a Japanese word does. It is not meant for the page. In Safari the word has
 * already ended when the key arrives, and only the key code shows it.
 */
export function endsWord({ isComposing, keyCode }: Pick<KeyboardEvent, 'isComposing' | 'keyCode'>): boolean {
  return isComposing || keyCode === HANDLED;
}
