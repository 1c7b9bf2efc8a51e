import { lazy, Suspense } from 'react';
import type { ActionModule } from '../api/client';
import { useAsk } from '../data/query';
import { actionAddress, Link, useGo, useSearch } from '../routes/router';
import { DataTable, type Column } from '../ui/DataTable';
import { Find } from '../ui/filters';
import { Checkbox, Group, SegmentedControl, Text } from '../ui/kit';
import { Coming, CommandLine, Empty, Failure, Page, State } from '../ui/parts';
import { commandLine, count, many, visible } from '../ui/words';
import { targetsOf } from './order/targets';

const Calls = lazy(() => import('./actions/Calls'));

const columns = (taken: Record<string, string | undefined>): Column<ActionModule>[] => [
  {
    key: 'module',
    title: 'Module',
    width: 'minmax(130px, 1fr)',
    cell: (m) => (
      <Link to={actionAddress(m.module)} search={taken} className="mono">
        {m.module}
      </Link>
    ),
  },
  {
    key: 'description',
    title: 'What it does',
    width: 'minmax(110px, 3fr)',
    cell: (m) => <span title={visible(m.description ?? '')}>{visible(m.description ?? '') || '–'}</span>,
  },
  {
    key: 'actions',
    title: 'Actions',
    width: 'minmax(185px, 2fr)',
    from: 900,
    cell: (m) => (m.actions ?? []).map((a) => a.name).join(', ') || 'not known yet',
  },
  { key: 'nodes', title: 'Nodes', width: '70px', end: true, cell: (m) => count(m.nodes) },
  {
    key: 'problems',
    title: 'Cannot use it',
    width: '110px',
    end: true,
    from: 600,
    cell: (m) => {
      const bad = (m.problems ?? []).reduce((n, p) => n + p.nodes, 0);
      return <span className={bad > 0 ? 'many-bad' : undefined}>{count(bad)}</span>;
    },
  },
];

/** What nodes can be asked and told: their modules, and what was called. */
export function Actions() {
  const [search, change] = useSearch();
  const calls = search.view === 'calls';
  return (
    <Page title="Actions" name="Actions">
      <SegmentedControl
        aria-label="What is shown"
        size="xs"
        style={{ alignSelf: 'flex-start' }}
        data={[
          { value: 'modules', label: 'Modules' },
          { value: 'calls', label: 'What was asked' },
        ]}
        value={calls ? 'calls' : 'modules'}
        onChange={(v) => change({ view: v === 'calls' ? v : '', find: '' }, false)}
      />
      {calls ? (
        <Suspense fallback={<Coming />}>
          <Calls />
        </Suspense>
      ) : (
        <Modules />
      )}
    </Page>
  );
}

function Modules() {
  const [search, change] = useSearch();
  const go = useGo();
  const problems = search.problems === 'yes';
  const asked = useAsk('action.list', { problems });
  const all = asked.data?.items ?? [];
  const find = (search.find ?? '').toLowerCase();
  const rows = all.filter(
    (m) =>
      !find ||
      [m.module, m.description ?? '', ...(m.actions ?? []).map((a) => a.name)].some((text) =>
        text.toLowerCase().includes(find),
      ),
  );
  if (asked.error) return <Failure error={asked.error} again={() => void asked.refetch()} />;
  if (!asked.data) return <Coming />;
  return (
    <>
      <Group gap="md" align="flex-end" className="filters">
        <div style={{ flex: '1 1 300px' }}>
          <Find placeholder="a module or an action" value={search.find} set={(text) => change({ find: text })}>
            {find ? `${count(rows.length)} of ${many(all.length, 'module')}` : many(all.length, 'module')}
          </Find>
        </div>
        <Checkbox
          label="Only those that some nodes cannot use"
          pb={8}
          checked={problems}
          onChange={(e) => change({ problems: e.currentTarget.checked ? 'yes' : '' })}
        />
      </Group>
      <DataTable
        label="Modules"
        columns={columns(targetsOf(search))}
        rows={rows}
        rowKey={(m) => m.module}
        whole
        onOpen={(m) => go(actionAddress(m.module), targetsOf(search))}
        empty={
          find || problems ? (
            <Empty title="No module is like that">
              <button type="button" className="as-link" onClick={() => change({ find: '', problems: '' })}>
                Show all modules
              </button>
            </Empty>
          ) : (
            <Empty title="No node has told what it can do">
              <Text size="sm">
                Nodes with an agent of Tutti say so when they connect. <State of="waiting">none has yet</State>
              </Text>
              <CommandLine line="tutti ca token" />
            </Empty>
          )
        }
      />
      <CommandLine line={commandLine('action', 'list', problems && '--problems')} />
    </>
  );
}
