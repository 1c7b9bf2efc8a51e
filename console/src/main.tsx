import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { newQueryClient, QueryClientProvider } from './data/query';
import { SessionProvider } from './data/session';
import { Pages } from './routes/router';
import { Theme } from './ui/Theme';

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Theme>
      <QueryClientProvider client={newQueryClient()}>
        <SessionProvider>
          <Pages />
        </SessionProvider>
      </QueryClientProvider>
    </Theme>
  </StrictMode>,
);
