import { useMemo, useState } from 'react';
import type { Event } from '../api/client';
import { useEvents, useOnceLive } from '../data/live';
import { useList } from '../data/query';
import { Link, nodeAddress, useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Button, Group, IconPlayerPause, IconPlayerPlay, Text, TextInput } from '../ui/kit';
import { CommandLine, Empty, Page, Place, State, Time, Whisper } from '../ui/parts';
import { commandLine, count, flags, many, visible } from '../ui/words';
import { ListOf } from './ListOf';

/** So many of the newest events are kept while one looks. */
const kept = 5000;

/** What stands in the place of a resource for events that are of none. */
const ofNoResource: Record<string, string> = {
  begin: 'run began',
  end: 'run ended',
  startup: 'agent',
  connect: 'agent',
  shutdown: 'agent',
  disconnect: 'agent',
};

const columns: Column<Event>[] = [
  { key: 'time', title: 'When', width: '92px', from: 600, cell: (e) => <Time at={e.time} /> },
  {
    key: 'node',
    title: 'Node',
    width: 'minmax(118px, 1.6fr)',
    cell: (e) => (
      <Link to={nodeAddress(e.node)} className="plain">
        {e.node}
      </Link>
    ),
  },
  { key: 'status', title: 'State', width: '106px', cell: (e) => <State of={e.status || e.kind} /> },
  {
    key: 'resource',
    title: 'Resource',
    width: 'minmax(100px, 1.4fr)',
    cell: (e) => {
      const text = e.type ? visible(`${e.type}[${e.title ?? ''}]`) : (ofNoResource[e.kind] ?? e.kind);
      return <span title={text}>{text}</span>;
    },
  },
  {
    key: 'message',
    title: 'What happened',
    width: 'minmax(120px, 2fr)',
    from: 600,
    cell: (e) => {
      const text = e.redacted ? `${e.property ?? ''} changed (hidden)` : visible(e.message ?? e.property ?? '');
      return <span title={text}>{text}</span>;
    },
  },
  {
    key: 'place',
    title: 'Place',
    width: 'minmax(90px, 1fr)',
    from: 1200,
    cell: (e) => <Place file={e.file} line={e.line} />,
  },
];

interface Filter {
  node?: string;
  status?: string;
  type?: string;
  kind?: string;
}

/** Whether an event that came is one of those that are wanted, as the server judges it. */
export function wanted(e: Event, f: Filter): boolean {
  return (
    (!f.node || e.node === f.node) &&
    (!f.status || (e.status ?? '') === f.status) &&
    (!f.type || (e.type ?? '') === f.type) &&
    (!f.kind || e.kind === f.kind)
  );
}

/** Joins what came with what was asked for: the newest first, none twice. */
export function joined(came: Event[], asked: Event[]): Event[] {
  const first = asked[0]?.number ?? 0;
  return [...came.filter((e) => e.number > first), ...asked];
}

/** What happens in Puppet runs, as it happens. Freezing keeps counting. */
export function Events() {
  const [search, change] = useSearch();
  const { node, status, type, kind } = search;
  const list = useList('event.list', { node, status, type, kind });
  const [came, setCame] = useState<Event[]>([]);
  const [frozen, setFrozen] = useState<Event[]>();
  useOnceLive(list.again); // those between the list and the stream
  useEvents((e) => setCame((before) => [e, ...before].slice(0, kept)));
  const all = useMemo(
    () =>
      joined(
        came.filter((e) => wanted(e, { node, status, type, kind })),
        list.rows,
      ),
    [came, list.rows, node, status, type, kind],
  );
  const rows = frozen ?? all;
  const behind = frozen ? all.length - frozen.length : 0;
  const set = (part: Filter) => {
    setFrozen(undefined);
    change(part as Record<string, string | undefined>);
  };
  return (
    <Page
      title="Events"
      name="Events"
      actions={
        <Button
          size="xs"
          variant="default"
          leftSection={frozen ? <IconPlayerPlay size={16} /> : <IconPlayerPause size={16} />}
          onClick={() => setFrozen(frozen ? undefined : all)}
          aria-pressed={Boolean(frozen)}
        >
          {frozen ? `Go on, +${count(behind)}` : 'Freeze'}
        </Button>
      }
    >
      <Group gap="xs" align="flex-end" className="filters">
        <TextInput
          label="Node"
          data-filter
          w={200}
          value={node ?? ''}
          onChange={(e) => set({ node: e.currentTarget.value })}
        />
        <TextInput
          label="Type"
          w={140}
          placeholder="Service"
          value={type ?? ''}
          onChange={(e) => set({ type: e.currentTarget.value })}
        />
        <Choice
          label="State"
          any="Any state"
          width={150}
          data={['failure', 'success', 'noop', 'skipped', 'audit']}
          value={status}
          set={(to) => set({ status: to })}
        />
        <Choice
          label="Kind"
          any="Any kind"
          width={140}
          data={['resource', 'begin', 'end', 'missing', 'alarm', 'startup', 'connect', 'shutdown', 'disconnect']}
          value={kind}
          set={(to) => set({ kind: to })}
        />
      </Group>
      <ListOf
        label="Events"
        columns={columns}
        list={frozen ? { ...list, more: () => {} } : list}
        rows={rows}
        rowKey={(e) => String(e.number)}
        empty={
          <Empty title="Nothing happened that is like that">
            <Text size="sm">
              Changes come here as Puppet runs make them, from nodes with a tutti agent, and with the reports of the
              others.
            </Text>
          </Empty>
        }
      />
      <CommandLine line={commandLine('event', 'tail', ...flags({ node, type, status, kind }))} />
      <Whisper text={frozen ? `frozen, ${many(behind, 'new event')}` : ''} />
    </Page>
  );
}
