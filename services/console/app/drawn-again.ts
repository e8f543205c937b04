/** Draws a canvas now, and again with each size of its element and each scheme of colors. Returns what ends it. */
export function drawnAgain(element: HTMLCanvasElement, draw: () => void): () => void {
  const observer = new ResizeObserver(draw);
  observer.observe(element);
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', draw);
  return () => {
    observer.disconnect();
    scheme.removeEventListener('change', draw);
  };
}
