import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

/**
 * `vite build` makes the page of the console, `vite build --mode file` makes the static page of `hopline view`, a single file next to it.
 */
export default defineConfig(({ mode }) => ({
  root: 'app',
  base: '/',
  publicDir: mode === 'file' ? false : 'public',
  // The rules of a task hash with `node:crypto`.
  resolve: { alias: { 'node:crypto': fileURLToPath(new URL('app/sha-256.ts', import.meta.url)) } },
  plugins: mode === 'file' ? [onePage()] : [],
  // The page has a security policy without `eval`, inline scripts and data URLs.
  build: {
    outDir: '../dist',
    emptyOutDir: mode !== 'file',
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // Modules of this workspace and their imports have no side effects, so unused ones are left out of the page.
      treeshake: { moduleSideEffects: id => id.endsWith('.css') || id.includes('/console/app/') },
      ...(mode === 'file' && { output: { codeSplitting: false } }),
    },
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
}));

const NO_CLUSTER = '\0no-cluster';

/** Puts script, style sheet and icon into the page, whose policy allows exactly these. `hopline view` adds the file before `</body>`. */
function onePage(): Plugin {
  return {
    name: 'one-page',
    enforce: 'pre',
    // A file has no cluster. Its pages and chart would be a fifth of this one.
    resolveId: source => (['./cluster-page.tsx', './agent-page.tsx'].includes(source) ? NO_CLUSTER : undefined),
    load: id => (id === NO_CLUSTER ? 'export const ClusterPage = () => null, AgentPage = ClusterPage;' : undefined),
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const outputs = Object.values(bundle);
        const html = outputs.find(one => one.fileName === 'index.html');
        const script = outputs.find(one => one.type === 'chunk');
        const style = outputs.find(one => one.fileName.endsWith('.css'));
        if (html?.type !== 'asset' || style?.type !== 'asset' || script === undefined) throw new Error('the page is not whole');
        // Nothing is loaded later, so there is nothing to preload. Vite leaves its marker in place of the missing list of files.
        const code = script.code.replaceAll('__VITE_PRELOAD__', 'void 0').replaceAll('</script', '<\\/script');
        const css = String(style.source);
        const icon = readFileSync(new URL('app/public/icon.svg', import.meta.url));
        const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
        const policy = [
          "default-src 'none'",
          `script-src ${hashOf(code)}`,
          `style-src ${hashOf(css)}`,
          'img-src data:',
          "base-uri 'none'",
          "form-action 'none'",
          "require-trusted-types-for 'script'",
          "trusted-types 'none'",
        ].join('; ');
        const page = String(html.source)
          .replace(/<script\b[^>]*><\/script>\s*/, '')
          .replace(/<link rel="stylesheet"[^>]*>\s*/, '')
          .replace(/(<link rel="icon" href=")[^"]*/, `$1data:image/svg+xml;base64,${icon.toString('base64')}`)
          .replace(
            '<meta charset="utf-8" />',
            match => `${match}\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`,
          )
          .replace('</head>', () => `<style>${css}</style>\n  </head>`)
          .replace('</body>', () => `<script type="module">${code}</script>\n  </body>`);
        for (const { fileName } of outputs) delete bundle[fileName];
        this.emitFile({ type: 'asset', fileName: 'file-page.html', source: page });
      },
    },
  };
}
