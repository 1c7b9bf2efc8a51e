import { lazy, Suspense } from 'react';
import { mayDo, useSession } from '../data/session';
import { useSearch } from '../routes/router';
import { SegmentedControl } from '../ui/kit';
import { Coming, Page } from '../ui/parts';

const Users = lazy(() => import('./access/Users'));
const Roles = lazy(() => import('./access/Roles'));
const Tokens = lazy(() => import('./access/Tokens'));

/** Users, what their roles allow, and the tokens of who is logged in. */
export function Access() {
  const { session } = useSession();
  const [search, change] = useSearch();
  const views = [
    { value: 'users', label: 'Users', shows: Users, may: mayDo(session, 'user:read') },
    { value: 'roles', label: 'Roles', shows: Roles, may: mayDo(session, 'role:read') },
    { value: 'tokens', label: 'Your tokens', shows: Tokens, may: true },
  ].filter((v) => v.may);
  const view = views.find((v) => v.value === search.view) ?? views[0]!;
  const Shown = view.shows;
  return (
    <Page title="Access" name="Access">
      <SegmentedControl
        aria-label="What is shown"
        size="xs"
        style={{ alignSelf: 'flex-start' }}
        data={views.map(({ value, label }) => ({ value, label }))}
        value={view.value}
        onChange={(v) => change({ view: v === views[0]!.value ? '' : v, name: '' }, false)}
      />
      <Suspense fallback={<Coming />}>
        <Shown />
      </Suspense>
    </Page>
  );
}
