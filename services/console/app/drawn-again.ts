/** Draws a canvas now, and again whenever the size of its element or the color scheme changes. Returns a function that stops this. */
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
