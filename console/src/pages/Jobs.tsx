import type { Job } from '../api/client';
import { useList } from '../data/query';
import { Link, useGo, useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Button, Group, Text, TextInput } from '../ui/kit';
import { CommandLine, Empty, Page, State, Time } from '../ui/parts';
import { commandLine, count, flags, titleOf } from '../ui/words';
import { ListOf } from './ListOf';

const columns: Column<Job>[] = [
  {
    key: 'id',
    title: 'Job',
    width: '60px',
    end: true,
    cell: (j) => (
      <Link to={`/jobs/${j.id}`} label={`Job ${j.id}`}>
        {j.id}
      </Link>
    ),
  },
  {
    key: 'title',
    title: 'What',
    width: 'minmax(110px, 2fr)',
    cell: (j) => <span title={titleOf(j)}>{titleOf(j)}</span>,
  },
  { key: 'state', title: 'State', width: '110px', cell: (j) => <State of={j.state} /> },
  { key: 'kind', title: 'Kind', width: '90px', from: 900, cell: (j) => j.kind },
  { key: 'nodes', title: 'Nodes', width: '70px', end: true, from: 600, cell: (j) => count(j.nodes) },
  {
    key: 'bad',
    title: 'Not well',
    width: '80px',
    end: true,
    from: 600,
    cell: (j) => {
      const bad = Object.entries(j.counts ?? {}).reduce((sum, [state, n]) => sum + (well.includes(state) ? 0 : n), 0);
      return <span className={bad > 0 ? 'many-bad' : undefined}>{count(bad)}</span>;
    },
  },
  { key: 'actor', title: 'By', width: 'minmax(80px, 1fr)', from: 900, cell: (j) => j.actor },
  { key: 'at', title: 'Ordered', width: '100px', from: 600, cell: (j) => <Time at={j.created_at} /> },
];

const well = ['waiting', 'sent', 'running', 'succeeded'];

export function JobTable({
  filter,
  empty,
  all,
  hint,
}: {
  filter: Record<string, string | undefined>;
  empty: string;
  all?: () => void;
  hint?: string; // what to do to have some; missing: that Puppet can be run
}) {
  const go = useGo();
  const list = useList('job.list', filter, { every: 10_000 });
  return (
    <ListOf
      label="Jobs"
      columns={columns}
      list={list}
      rowKey={(j) => j.id}
      onOpen={(j) => go(`/jobs/${j.id}`)}
      empty={
        <Empty title={empty}>
          {all ? (
            <Button variant="default" size="xs" onClick={all}>
              Show all jobs
            </Button>
          ) : hint ? (
            <Text size="sm">{hint}</Text>
          ) : (
            <>
              <Text size="sm">Choose nodes, and run Puppet on them.</Text>
              <Link to="/nodes">Nodes</Link>
            </>
          )}
        </Empty>
      }
    />
  );
}

/** Jobs, newest first. */
export function Jobs() {
  const [search, change] = useSearch();
  const filter = { state: search.state, kind: search.kind, actor: search.actor };
  const some = Object.values(filter).some(Boolean);
  return (
    <Page title="Jobs" name="Jobs">
      <Group gap="xs" className="filters">
        <Choice
          label="State"
          any="Any state"
          width={150}
          data={['active', 'queued', 'running', 'stopping', 'finished', 'failed', 'stopped']}
          value={filter.state}
          set={(state) => change({ state })}
        />
        <Choice
          label="Kind"
          any="Any kind"
          width={140}
          data={['puppet', 'task', 'action', 'command', 'script', 'file']}
          value={filter.kind}
          set={(kind) => change({ kind })}
        />
        <TextInput
          label="Ordered by"
          data-filter
          w={160}
          value={filter.actor ?? ''}
          onChange={(e) => change({ actor: e.currentTarget.value })}
        />
      </Group>
      <JobTable
        filter={filter}
        empty={some ? 'No job is like that' : 'Nothing was ordered yet'}
        all={some ? () => change({ state: '', kind: '', actor: '' }) : undefined}
      />
      <CommandLine
        line={commandLine('job', 'list', ...flags({ state: filter.state, kind: filter.kind, by: filter.actor }))}
      />
    </Page>
  );
}
