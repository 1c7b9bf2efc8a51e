import { useState } from 'react';
import type { Node } from '../api/client';
import { moves, useAfterEvents } from '../data/live';
import { useAgain, useList } from '../data/query';
import { Link, nodeAddress, useGo, useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Button, Group, Text, TextInput } from '../ui/kit';
import { CommandLine, Empty, Page, State, Time, Whisper } from '../ui/parts';
import { commandLine, count, flags, many, runStates } from '../ui/words';
import { RunButton } from './RunDialog';
import { ListOf } from './ListOf';

const stateNames = Object.entries(runStates).map(([value, word]) => ({ value, label: word.text }));
const connections = [
  { value: 'yes', label: 'connected' },
  { value: 'no', label: 'not connected' },
  { value: 'never', label: 'never connected' },
];
const hour = 3_600_000;

/** Whether a node's last report is so old that its state says little. */
export function isOld(n: Node): boolean {
  return n.report_at !== undefined && Date.now() - Date.parse(n.report_at) > hour;
}

const columns: Column<Node>[] = [
  {
    key: 'name',
    title: 'Node',
    width: 'minmax(170px, 2fr)',
    order: 'name',
    cell: (n) => (
      <Link to={nodeAddress(n.name)} className="plain">
        {n.name}
      </Link>
    ),
  },
  {
    key: 'state',
    title: 'Last run',
    width: '130px',
    order: 'state',
    cell: (n) => <State of={n.state} old={isOld(n)} />,
  },
  {
    key: 'reported',
    title: 'Reported',
    width: '100px',
    order: 'reported',
    from: 600,
    cell: (n) => <Time at={n.report_at} />,
  },
  { key: 'connected', title: 'Agent', width: 'minmax(150px, 1fr)', from: 600, cell: (n) => <Connection node={n} /> },
  {
    key: 'environment',
    title: 'Environment',
    width: 'minmax(110px, 1fr)',
    from: 900,
    cell: (n) => n.environment ?? '–',
  },
  {
    key: 'catalog',
    title: 'Catalog',
    width: '110px',
    from: 1200,
    cell: (n) => <span className="mono">{n.catalog_digest?.slice(0, 10) ?? '–'}</span>,
  },
];

export function Connection({ node }: { node: Node }) {
  if (node.connected) return <State of="succeeded">live</State>;
  if (node.last_connected) {
    return (
      <State of="offline">
        seen <Time at={node.last_connected.until} />
      </State>
    );
  }
  return <State of="waiting">never connected</State>;
}

/** The list of nodes: the server filters, sorts, counts and pages it. */
export function Nodes() {
  const [search, change] = useSearch();
  const go = useGo();
  const again = useAgain();
  const filter = {
    where: search.where,
    state: search.state,
    connected: search.connected,
    environment: search.environment,
    group: search.group,
    version: search.version,
  };
  const order = search.order ?? 'name';
  const list = useList('node.list', { ...filter, order: search.order, total: true });
  useAfterEvents(moves, () => again('node.list'));
  const filtered = Object.values(filter).some(Boolean);
  const total = list.old ? undefined : list.total;
  const { where, state, environment, group, connected, version } = filter;
  const words = [
    ...flags({ where, state, environment, group, version, order: search.order }),
    connected === 'yes' && '--connected',
    connected === 'no' && '--not-connected',
    connected === 'never' && '--never-connected',
  ];
  // Jobs know conditions, groups and all: other filters narrow what is seen, and are no target.
  const target = { query: where, group, all: !where && !group ? true : undefined };
  const runs = target.all ? ['--all'] : flags({ where, group });
  const narrowed = Boolean(state || connected || environment || version || (where && group));
  const shown = { nodes: list.rows.map((n) => n.name) };
  const targets = narrowed ? shown : target;
  return (
    <Page
      title={
        <>
          Nodes{' '}
          {total !== undefined && (
            <Text span c="dimmed" size="md" data-testid="total">
              {count(total)}
            </Text>
          )}
        </>
      }
      name="Nodes"
      actions={
        <RunButton
          targets={targets}
          words={narrowed ? shown.nodes : runs}
          disabled={total === 0 || list.old || (narrowed && !list.whole) || list.rows.length === 0}
        />
      }
    >
      <Filters where={where ?? ''} state={state} connected={connected} change={change} />
      <ListOf
        label="Nodes"
        columns={columns}
        list={list}
        rowKey={(n) => n.name}
        total={total}
        order={order}
        onOrder={(next) => change({ order: next === 'name' ? '' : next })}
        onOpen={(n) => go(nodeAddress(n.name))}
        empty={
          filtered ? (
            <Empty title="No node is like that">
              <Button
                variant="default"
                size="xs"
                onClick={() => change({ where: '', state: '', connected: '', environment: '', group: '', version: '' })}
              >
                Show all nodes
              </Button>
            </Empty>
          ) : (
            <Empty title="No nodes yet">
              <Text size="sm">This command prints what to run on a machine.</Text>
              <CommandLine line="tutti ca token" />
            </Empty>
          )
        }
      />
      <CommandLine line={commandLine('node', 'list', ...words)} />
      <Whisper text={total === undefined ? '' : many(total, 'node')} />
    </Page>
  );
}

/** The form above the list. */
function Filters(props: {
  where: string;
  state?: string;
  connected?: string;
  change: (search: Record<string, string>, replace?: boolean) => void;
}) {
  const [typed, setTyped] = useState(props.where);
  const [applied, setApplied] = useState(props.where);
  if (applied !== props.where) {
    // Back and forward change the condition, too.
    setApplied(props.where);
    setTyped(props.where);
  }
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault();
        props.change({ where: typed }, false);
      }}
    >
      <Group gap="xs" align="flex-end" className="filters">
        <TextInput
          data-filter
          style={{ flex: '1 1 260px' }}
          label="Condition"
          placeholder={'facts.os.family = "Debian" or certname ~ "^web-"'}
          value={typed}
          onChange={(e) => setTyped(e.currentTarget.value)}
        />
        <Choice
          label="Last run"
          any="Any state"
          width={140}
          data={stateNames}
          value={props.state}
          set={(state) => props.change({ state })}
        />
        <Choice
          label="Agent"
          any="Any agent"
          width={150}
          data={connections}
          value={props.connected}
          set={(connected) => props.change({ connected })}
        />
        <Button type="submit" variant="default">
          Filter
        </Button>
      </Group>
    </form>
  );
}
