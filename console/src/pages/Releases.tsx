import type { Release } from '../api/client';
import { useList } from '../data/query';
import { Link, useGo, useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Button, Group, Text } from '../ui/kit';
import { CommandLine, Empty, Page, State, Time } from '../ui/parts';
import { commandLine, count, flags, visible } from '../ui/words';
import { EnvironmentChoice } from './change/Environment';
import { sourceOf } from './change/source';
import { ListOf } from './ListOf';

const columns: Column<Release>[] = [
  {
    key: 'id',
    title: 'Release',
    width: '64px',
    end: true,
    cell: (r) => (
      <Link to={`/releases/${r.id}`} label={`Release ${r.id}`}>
        {r.id}
      </Link>
    ),
  },
  { key: 'state', title: 'State', width: '165px', cell: (r) => <State of={r.state} /> },
  {
    key: 'about',
    title: 'What',
    width: 'minmax(80px, 2fr)',
    cell: (r) => {
      const text = visible(r.description ? `${r.description} (${sourceOf(r)})` : sourceOf(r));
      return <span title={text}>{text}</span>;
    },
  },
  {
    key: 'environment',
    title: 'Environment',
    width: 'minmax(90px, 1fr)',
    from: 900,
    cell: (r) => r.environment ?? '–',
  },
  {
    key: 'wave',
    title: 'Wave',
    width: '70px',
    end: true,
    from: 600,
    cell: (r) => `${r.wave} of ${(r.waves ?? []).length}`,
  },
  { key: 'nodes', title: 'Nodes', width: '70px', end: true, from: 600, cell: (r) => count(r.nodes) },
  {
    key: 'failures',
    title: 'Failed',
    width: '70px',
    end: true,
    from: 600,
    cell: (r) => <span className={r.failures > 0 ? 'many-bad' : undefined}>{count(r.failures)}</span>,
  },
  { key: 'by', title: 'By', width: 'minmax(80px, 1fr)', from: 900, cell: (r) => r.author },
  { key: 'at', title: 'Made', width: '100px', from: 600, cell: (r) => <Time at={r.created_at} /> },
];

/** Releases, newest first. */
export function Releases() {
  const [search, change] = useSearch();
  const go = useGo();
  const filter = { environment: search.environment, state: search.state };
  const some = Object.values(filter).some(Boolean);
  const list = useList('release.list', filter, { every: 10_000 });
  return (
    <Page title="Releases" name="Releases">
      <Group gap="xs" className="filters">
        <EnvironmentChoice value={search.environment} set={(environment) => change({ environment })} />
        <Choice
          label="State"
          any="Any state"
          width={190}
          data={['waiting_approval', 'running', 'paused', 'stopping', 'done', 'done_with_failures', 'aborted'].map(
            (value) => ({ value, label: value.replaceAll('_', ' ') }),
          )}
          value={search.state}
          set={(state) => change({ state })}
        />
      </Group>
      <ListOf
        label="Releases"
        columns={columns}
        list={list}
        rowKey={(r) => r.id ?? ''}
        onOpen={(r) => go(`/releases/${r.id}`)}
        empty={
          some ? (
            <Empty title="No release is like that">
              <Button variant="default" size="xs" onClick={() => change({ environment: '', state: '' })}>
                Show all releases
              </Button>
            </Empty>
          ) : (
            <Empty title="Nothing was released yet">
              <Text size="sm">A release gives nodes the catalogs of a preview: open one that is ready.</Text>
              <Link to="/previews">Previews</Link>
            </Empty>
          )
        }
      />
      <CommandLine line={commandLine('release', 'list', ...flags(filter))} />
    </Page>
  );
}
