// The one place that knows the router's library: which page is at which address, and links to them.
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Link as RouterLink,
  RouterProvider,
  useLocation,
  useNavigate,
  useParams,
} from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { Frame } from '../pages/Frame';
import { NoPage } from '../pages/NoPage';

export { Outlet } from '@tanstack/react-router';

const root = createRootRoute({ component: Frame, notFoundComponent: NoPage });

const page = <P extends string>(path: P, load: () => Promise<Record<string, unknown>>, name: string) =>
  createRoute({
    getParentRoute: () => root,
    path,
    validateSearch: (search: Record<string, unknown>) => search as Record<string, string>,
    component: lazyRouteComponent(load as never, name as never),
  });

const routes = root.addChildren([
  page('/', () => import('../pages/Overview'), 'Overview'),
  page('/login', () => import('../pages/Login'), 'LoginPage'),
  page('/nodes', () => import('../pages/Nodes'), 'Nodes'),
  page('/nodes/$name', () => import('../pages/Node'), 'NodePage'),
  page('/resources', () => import('../pages/Resources'), 'Resources'),
  page('/facts', () => import('../pages/Facts'), 'Facts'),
  page('/jobs', () => import('../pages/Jobs'), 'Jobs'),
  page('/jobs/$job', () => import('../pages/Job'), 'JobPage'),
  page('/versions', () => import('../pages/Versions'), 'Versions'),
  page('/previews', () => import('../pages/Previews'), 'Previews'),
  page('/previews/$preview', () => import('../pages/Preview'), 'PreviewPage'),
  page('/releases', () => import('../pages/Releases'), 'Releases'),
  page('/releases/$release', () => import('../pages/Release'), 'ReleasePage'),
  page('/queue', () => import('../pages/Queue'), 'Queue'),
  page('/certificates', () => import('../pages/Certificates'), 'Certificates'),
  page('/policies', () => import('../pages/Policies'), 'Policies'),
  page('/access', () => import('../pages/Access'), 'Access'),
  page('/audit', () => import('../pages/Audit'), 'Audit'),
  page('/about', () => import('../pages/About'), 'About'),
  page('/queries', () => import('../pages/Queries'), 'Queries'),
  page('/tasks', () => import('../pages/Tasks'), 'Tasks'),
  page('/tasks/$task', () => import('../pages/Task'), 'TaskPage'),
  page('/actions', () => import('../pages/Actions'), 'Actions'),
  page('/actions/$module', () => import('../pages/Action'), 'ActionPage'),
  page('/groups', () => import('../pages/Groups'), 'Groups'),
  page('/groups/$group', () => import('../pages/Group'), 'GroupPage'),
  page('/events', () => import('../pages/Events'), 'Events'),
]);

// What is in the address is text: nothing of it is read as JSON.
function makeRouter() {
  return createRouter({
    routeTree: routes,
    defaultPreload: 'intent',
    scrollRestoration: false,
    parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
    stringifySearch: (search) => {
      const left = Object.entries(search).filter(([, v]) => v !== undefined && v !== '');
      const text = new URLSearchParams(left as [string, string][]).toString();
      return text ? `?${text}` : '';
    },
  });
}

export function Pages() {
  const [router] = useState(makeRouter);
  return <RouterProvider router={router} />;
}

type Search = Record<string, string | undefined>;

/** A link to a page. */
export function Link(props: {
  to: string;
  search?: Search;
  className?: string;
  children: ReactNode;
  label?: string;
  current?: boolean;
}) {
  return (
    <RouterLink
      to={props.to as never}
      search={(props.search ?? {}) as never}
      className={props.className}
      aria-label={props.label}
      aria-current={props.current ? 'page' : undefined}
    >
      {props.children}
    </RouterLink>
  );
}

export function nodeAddress(name: string): string {
  return `/nodes/${encodeURIComponent(name)}`;
}

export function groupAddress(name: string): string {
  return `/groups/${encodeURIComponent(name)}`;
}

export function taskAddress(name: string): string {
  return `/tasks/${encodeURIComponent(name)}`;
}

export function actionAddress(module: string): string {
  return `/actions/${encodeURIComponent(module)}`;
}

export function useGo() {
  const navigate = useNavigate();
  return (to: string, search: Search = {}, replace = false) =>
    void navigate({ to: to as never, search: search as never, replace });
}

/** A part of the address's path. */
export function usePart(name: string): string {
  const parts = useParams({ strict: false }) as Record<string, string | undefined>;
  return parts[name] ?? '';
}

/** What is in the address behind the question mark, and how to change it; what is empty is left out. */
export function useSearch(): [Record<string, string | undefined>, (change: Search, replace?: boolean) => void] {
  const navigate = useNavigate();
  const location = useLocation();
  const search = location.search as Record<string, string | undefined>;
  return [
    search,
    (change, replace = true) => void navigate({ to: '.', search: { ...search, ...change } as never, replace } as never),
  ];
}

export function usePath(): string {
  return useLocation().pathname;
}
