import { defineConfig } from 'vite';

export default defineConfig({
  root: 'app',
  base: '/',
  // The page has a security policy without `eval`, inline scripts and data URLs.
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The modules of this workspace and what they import have no effect when loaded: what the page does not use stays out of it.
    rolldownOptions: { treeshake: { moduleSideEffects: id => id.endsWith('.css') || id.includes('/console/app/') } },
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
});
