import { defineConfig } from 'vite';

// `npm run dev` shows the page on its own port and asks a node for everything else: GOCRONTAB_SERVER.
const node = process.env.GOCRONTAB_SERVER ?? 'http://127.0.0.1:8610';

export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    emptyOutDir: false, // the placeholder stays
    assetsInlineLimit: 0, // the page's policy allows no data: addresses
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': { target: node, changeOrigin: true }, '/docs': node, '/openapi.json': node } },
});
