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
    // Modules of this workspace and their imports have no side effects, so unused ones are left out of the page.
    rolldownOptions: { treeshake: { moduleSideEffects: id => id.endsWith('.css') || id.includes('/console/app/') } },
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
});
