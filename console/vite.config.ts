/// <reference types="vitest/config" />
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// The built files are committed: equal sources must give equal bytes.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: '../internal/protocol/console/dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: 'es2022',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  test: { environment: 'happy-dom', include: ['src/**/*.test.{ts,tsx}'] },
});
