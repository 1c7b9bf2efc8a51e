import { useEffect, useState } from 'react';
import { call, Refusal } from '../api/client';
import { listen, useLink } from '../data/live';
import { useNewLogin } from '../data/query';
import { mayDo, useSession } from '../data/session';
import { Link, Outlet, useGo, usePath } from '../routes/router';
import {
  ActionIcon,
  AppShell,
  Burger,
  Group,
  IconActivity,
  IconBinaryTree,
  IconBolt,
  IconCertificate,
  IconHistory,
  IconInfoCircle,
  IconShieldCheck,
  IconStack2,
  IconUsers,
  IconFileDiff,
  IconGitBranch,
  IconHome,
  IconLogout,
  IconMoon,
  IconPlayerPlay,
  IconRocket,
  IconListDetails,
  IconPackages,
  IconServer2,
  IconTerminal2,
  IconZoomQuestion,
  IconSun,
  IconUser,
  Kbd,
  Menu,
  Modal,
  Table,
  Text,
  useDisclosure,
  useHotkeys,
  useTheme,
} from '../ui/kit';
import { Coming, Empty, Failure } from '../ui/parts';
import { ago } from '../ui/words';
import { LoginForm } from './Login';

const places = [
  { group: '', to: '/', text: 'Overview', icon: IconHome, needs: '' },
  { group: 'Fleet', to: '/nodes', text: 'Nodes', icon: IconServer2, needs: 'node:read' },
  { group: '', to: '/resources', text: 'Resources', icon: IconPackages, needs: 'catalog:read' },
  { group: '', to: '/facts', text: 'Facts', icon: IconListDetails, needs: 'query:run' },
  { group: '', to: '/queries', text: 'Queries', icon: IconZoomQuestion, needs: 'query:run' },
  { group: 'Change', to: '/versions', text: 'Versions', icon: IconGitBranch, needs: 'code:read' },
  { group: '', to: '/previews', text: 'Previews', icon: IconFileDiff, needs: 'preview:read' },
  { group: '', to: '/releases', text: 'Releases', icon: IconRocket, needs: 'release:read' },
  { group: '', to: '/policies', text: 'Policies', icon: IconShieldCheck, needs: 'policy:read' },
  { group: 'Work', to: '/jobs', text: 'Jobs', icon: IconPlayerPlay, needs: 'job:read' },
  { group: '', to: '/tasks', text: 'Tasks', icon: IconTerminal2, needs: 'task:read' },
  { group: '', to: '/actions', text: 'Actions', icon: IconBolt, needs: 'node:read' },
  { group: '', to: '/events', text: 'Events', icon: IconActivity, needs: 'report:read' },
  { group: '', to: '/queue', text: 'Compile queue', icon: IconStack2, needs: 'catalog:read' },
  { group: 'Settings', to: '/groups', text: 'Groups', icon: IconBinaryTree, needs: 'group:read' },
  { group: '', to: '/certificates', text: 'Certificates', icon: IconCertificate, needs: 'certificate:read' },
  { group: '', to: '/access', text: 'Access', icon: IconUsers, needs: '' },
  { group: '', to: '/audit', text: 'Audit log', icon: IconHistory, needs: 'audit:read' },
  { group: '', to: '/about', text: 'About', icon: IconInfoCircle, needs: '' },
];

const keys: [string, string][] = [
  ['g o', 'Overview'],
  ['g n', 'Nodes'],
  ['g v', 'Versions'],
  ['g p', 'Previews'],
  ['g r', 'Releases'],
  ['g j', 'Jobs'],
  ['g t', 'Tasks'],
  ['g a', 'Actions'],
  ['g q', 'Queries'],
  ['g e', 'Events'],
  ['/', 'go to the filter of a list'],
  ['j k', 'next and previous row of a list'],
  ['Enter', 'open the row'],
  ['?', 'this help'],
];

/** What is around every page: where one can go, who is logged in, how the stream stands. */
export function Frame() {
  const { session, loading, error } = useSession();
  const path = usePath();
  if (loading) return <Waiting />;
  if (path === '/login' && !session) return <Outlet />;
  if (!session) {
    if (error) {
      return (
        <main>
          <Empty title="The server does not answer">
            <Text size="sm">{error}</Text>
          </Empty>
        </main>
      );
    }
    return (
      <main>
        <LoginForm />
      </main>
    );
  }
  return <Within />;
}

function Waiting() {
  return (
    <main style={{ padding: 24 }}>
      <Coming />
    </main>
  );
}

function Within() {
  const { session, lost, again, leave } = useSession();
  const newLogin = useNewLogin();
  const [help, helps] = useDisclosure();
  const path = usePath();
  const [openAt, setOpenAt] = useState(''); // on narrow windows the menu is open for one page: going to another closes it
  const open = openAt === path;
  const go = useGo();
  const watches = mayDo(session, 'report:read');
  useEffect(() => (watches ? listen() : undefined), [watches]);
  useGoKeys(
    {
      o: '/',
      n: '/nodes',
      v: '/versions',
      p: '/previews',
      r: '/releases',
      j: '/jobs',
      t: '/tasks',
      q: '/queries',
      a: '/actions',
      e: '/events',
    },
    go,
  );
  useHotkeys([
    ['shift+?', helps.toggle],
    ['?', helps.toggle],
    [
      '/',
      (e) => {
        e.preventDefault();
        document.querySelector<HTMLElement>('[data-filter]')?.focus();
      },
    ],
  ]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 190, breakpoint: 'sm', collapsed: { mobile: !open } }}
      padding="md"
      transitionDuration={0}
    >
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="xs" wrap="nowrap">
            <Burger
              opened={open}
              onClick={() => setOpenAt(open ? '' : path)}
              hiddenFrom="sm"
              size="sm"
              aria-label="Pages"
              aria-expanded={open}
            />
            <Link to="/" className="plain">
              <Text fw={700} span>
                Tutti
              </Text>
            </Link>
          </Group>
          <Group gap="sm" wrap="nowrap">
            {watches && <LinkState />}
            <ThemeSwitch />
            <Person leave={leave} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar component="nav" aria-label="Pages" style={{ overflowY: 'auto' }}>
        {places.map((p) => (
          <div key={p.to}>
            {p.group && <div className="nav-group">{p.group}</div>}
            <NavPlace
              {...p}
              current={p.to === '/' ? path === '/' : path.startsWith(p.to)}
              may={!p.needs || mayDo(session, p.needs)}
            />
          </div>
        ))}
      </AppShell.Navbar>
      <AppShell.Main className="main" id="main" tabIndex={-1}>
        <Outlet />
      </AppShell.Main>
      <Modal
        opened={lost}
        onClose={() => {}}
        withCloseButton={false}
        title="Your login has ended"
        closeOnEscape={false}
      >
        <Text size="sm" mb="sm">
          What you have typed is still here. Log in again to go on.
        </Text>
        <LoginForm
          within
          name={session?.name}
          done={async (name) => {
            await again();
            newLogin(name === session?.name);
          }}
        />
      </Modal>
      <Modal opened={help} onClose={helps.close} title="Keys" closeButtonProps={{ 'aria-label': 'Close' }}>
        <Table>
          <Table.Tbody>
            {keys.map(([key, does]) => (
              <Table.Tr key={key}>
                <Table.Td>
                  <Kbd>{key}</Kbd>
                </Table.Td>
                <Table.Td>{does}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Modal>
    </AppShell>
  );
}

function NavPlace({
  to,
  text,
  icon: Icon,
  current,
  may,
}: (typeof places)[number] & { current: boolean; may: boolean }) {
  if (!may) return null;
  return (
    <Link to={to} current={current} className="nav-place">
      <Icon size={18} aria-hidden />
      {text}
    </Link>
  );
}

/** Two keys, one after the other: g and a letter. */
function useGoKeys(where: Record<string, string>, go: (to: string) => void) {
  useEffect(() => {
    let began = 0;
    const press = (e: KeyboardEvent) => {
      const target = e.target as HTMLElement;
      if (
        e.ctrlKey ||
        e.metaKey ||
        e.altKey ||
        target.closest('input, textarea, select, [contenteditable=true], [role=dialog]')
      )
        return;
      if (e.key === 'g') began = Date.now();
      else if (Date.now() - began < 1500 && where[e.key]) {
        began = 0;
        e.preventDefault();
        go(where[e.key]!);
      }
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  });
}

function LinkState() {
  const link = useLink();
  const [, tick] = useState(0);
  useEffect(() => {
    if (link.state === 'live') return;
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, [link.state]);
  const words = {
    live: 'live',
    connecting: 'connecting',
    off: 'connecting',
    lost: `reconnecting, lost ${ago(new Date(link.since).toISOString())}`,
  };
  const tone = link.state === 'live' ? 'ok' : link.state === 'lost' ? 'bad' : 'calm';
  return (
    <output className="state" data-tone={tone} data-testid="link">
      <span aria-hidden>●</span> {words[link.state]}
    </output>
  );
}

function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useTheme();
  const dark =
    colorScheme === 'dark' || (colorScheme === 'auto' && window.matchMedia('(prefers-color-scheme: dark)').matches);
  return (
    <ActionIcon
      variant="default"
      aria-label={dark ? 'Use the light theme' : 'Use the dark theme'}
      onClick={() => setColorScheme(dark ? 'light' : 'dark')}
    >
      {dark ? <IconSun size={18} /> : <IconMoon size={18} />}
    </ActionIcon>
  );
}

function Person({ leave }: { leave: () => Promise<void> }) {
  const { session } = useSession();
  const [error, setError] = useState<Refusal>();
  const out = async (everywhere: boolean) => {
    try {
      if (everywhere) await call('token.revoke_all', { user: '@me' });
      await leave();
    } catch (cause) {
      if (!(cause instanceof Refusal)) throw cause;
      setError(cause);
    }
  };
  return (
    <>
      <Menu position="bottom-end" width={260} transitionProps={{ duration: 0 }}>
        <Menu.Target>
          <ActionIcon variant="default" aria-label={`You are ${session?.name}`}>
            <IconUser size={18} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>
            {session?.name}
            <br />
            {(session?.roles ?? []).join(', ') || 'no role'}
            {session?.narrowed_to?.length ? `, narrowed to ${session.narrowed_to.join(', ')}` : ''}
          </Menu.Label>
          <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void out(false)}>
            Log out
          </Menu.Item>
          <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void out(true)}>
            Log out everywhere
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Modal
        opened={error !== undefined}
        onClose={() => setError(undefined)}
        title="You are still logged in"
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {error && <Failure error={error} />}
      </Modal>
    </>
  );
}
