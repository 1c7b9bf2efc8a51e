import { useEffect, useRef, useState } from 'react';
import { logIn, Refusal } from '../api/client';
import { useSession } from '../data/session';
import { useGo } from '../routes/router';
import { Button, Paper, PasswordInput, Stack, Text, TextInput, Title } from '../ui/kit';
import { CommandLine, Failure } from '../ui/parts';

/** The page that a link leads to behind the login: one of this console. */
export function pageOf(search: string): { to: string; search: Record<string, string> } {
  const page = new URLSearchParams(search).get('page') ?? '/';
  const base = 'http://console.invalid';
  const address = URL.canParse(page, base) ? new URL(page, base) : new URL(base);
  if (!page.startsWith('/') || address.origin !== base) return { to: '/', search: {} };
  return { to: address.pathname, search: Object.fromEntries(address.searchParams) };
}

const codeOfAddress = () => new URLSearchParams(window.location.hash.slice(1)).get('code');

/** Where the form is: narrow windows have room beside it. */
const column = { maw: 420, w: 'calc(100% - 32px)', mx: 'auto' };

/** The page of a link: its code logs in, once. Without a code it is the form. */
export function LoginPage() {
  const { session, again } = useSession();
  const go = useGo();
  const [error, setError] = useState<Refusal | null>(null);
  const tried = useRef('');
  const [code, setCode] = useState(codeOfAddress);
  const [page] = useState(() => pageOf(window.location.search));
  useEffect(() => {
    // A link that is opened where this page is already changes the address, and loads nothing.
    const follow = () => setCode((before) => codeOfAddress() ?? before);
    window.addEventListener('hashchange', follow);
    return () => window.removeEventListener('hashchange', follow);
  }, []);
  useEffect(() => {
    if (!code || tried.current === code) return;
    tried.current = code;
    setError(null);
    window.history.replaceState(null, '', '/login'); // the code is of no use to the next one who sits here
    logIn({ code }).then(
      async () => {
        await again();
        go(page.to, page.search, true);
      },
      (cause: unknown) => setError(cause instanceof Refusal ? cause : null),
    );
  }, [code, again, go, page]);
  useEffect(() => {
    if (session && !code) go(page.to, page.search, true);
  }, [session, code, go, page]);
  return (
    <main>
      {error && (
        <Stack {...column} mt={40}>
          <Failure error={error} />
        </Stack>
      )}
      <LoginForm
        done={async () => {
          await again();
          go(page.to, page.search, true);
        }}
      />
    </main>
  );
}

/** Name and password. Within a page that is open it logs in again, and the page stays. */
export function LoginForm({
  within,
  name: known,
  done,
}: {
  within?: boolean;
  name?: string;
  done?: (name: string) => Promise<void>;
}) {
  const { again } = useSession();
  const [name, setName] = useState(known ?? '');
  const [password, setPassword] = useState('');
  const [error, setError] = useState<Refusal | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (!within) document.title = 'Log in · Tutti';
  }, [within]);
  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      await logIn({ name, password });
      await (done ?? again)(name);
    } catch (cause) {
      if (!(cause instanceof Refusal)) throw cause;
      setError(cause);
    } finally {
      setPassword('');
      setBusy(false);
    }
  };
  const form = (
    <form
      onSubmit={(e) => {
        e.preventDefault();
        void submit();
      }}
    >
      <Stack>
        {!within && <Title order={1}>Log in to Tutti</Title>}
        <TextInput
          label="Name"
          autoComplete="username"
          value={name}
          onChange={(e) => setName(e.currentTarget.value)}
          required
        />
        <PasswordInput
          label="Password"
          autoComplete="current-password"
          value={password}
          onChange={(e) => setPassword(e.currentTarget.value)}
          required
        />
        {error && <Failure error={error} />}
        <Button type="submit" loading={busy}>
          Log in
        </Button>
        {!within && (
          <div>
            <Text size="sm" c="dimmed" mb={4}>
              Or on the server’s machine, and wherever you are logged in already
            </Text>
            <CommandLine line="tutti console open" />
          </div>
        )}
      </Stack>
    </form>
  );
  return within ? (
    form
  ) : (
    <Paper withBorder {...column} mt={{ base: 24, sm: 80 }} p="lg">
      {form}
    </Paper>
  );
}
