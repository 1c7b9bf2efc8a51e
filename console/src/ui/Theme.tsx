import '@mantine/core/styles.css';
import './app.css';
import { createTheme, MantineProvider } from '@mantine/core';
import type { ReactNode } from 'react';

const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 8, dark: 8 },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "DejaVu Sans Mono", Menlo, monospace',
  defaultRadius: 'sm',
  // The page around a dialog does not scroll. What would lock it writes a style that the page's policy does not let in.
  components: { Modal: { defaultProps: { lockScroll: false } } },
  headings: { fontWeight: '600', sizes: { h1: { fontSize: '1.375rem' }, h2: { fontSize: '1.05rem' } } },
});

/** The page's policy allows styles with this word only. */
const nonce = () => document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.nonce ?? '';

export function Theme({ children }: { children: ReactNode }) {
  return (
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={nonce}>
      {children}
    </MantineProvider>
  );
}
