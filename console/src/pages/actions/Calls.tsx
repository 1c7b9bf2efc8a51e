import type { ActionCall } from '../../api/client';
import { useAsk, useList } from '../../data/query';
import { Link, useSearch } from '../../routes/router';
import type { Column } from '../../ui/DataTable';
import { Group, Modal, Text, TextInput } from '../../ui/kit';
import { Coming, CommandLine, Empty, Failure, State, Time } from '../../ui/parts';
import { commandLine, count, duration, flags, many, visible } from '../../ui/words';
import { ListOf } from '../ListOf';
import { AnswerState } from './Answers';

const bad = (c: ActionCall) => c.nodes - (c.counts?.ok ?? 0);

const columns = (open: (c: ActionCall) => void): Column<ActionCall>[] => [
  {
    key: 'id',
    title: 'Call',
    width: '70px',
    cell: (c) => (
      <button type="button" className="as-link" aria-label={`Open call ${c.id}`} onClick={() => open(c)}>
        {c.id}
      </button>
    ),
  },
  {
    key: 'action',
    title: 'Action',
    width: 'minmax(130px, 2fr)',
    cell: (c) => (
      <span className="mono">
        {c.module} {c.action}
      </span>
    ),
  },
  { key: 'nodes', title: 'Nodes', width: '70px', end: true, cell: (c) => count(c.nodes) },
  {
    key: 'bad',
    title: 'Not ok',
    width: '70px',
    end: true,
    from: 600,
    cell: (c) => <span className={bad(c) > 0 ? 'many-bad' : undefined}>{count(bad(c))}</span>,
  },
  { key: 'by', title: 'By', width: 'minmax(80px, 1fr)', from: 600, cell: (c) => c.actor },
  { key: 'at', title: 'Asked', width: '100px', from: 600, cell: (c) => <Time at={c.began_at} /> },
];

/** Calls that only read, newest first. What nodes answered is not kept. */
export default function Calls() {
  const [search, change] = useSearch();
  const list = useList('action.calls', { actor: search.actor, module: search.module }, { every: 10_000 });
  const open = (c: ActionCall) => change({ call: c.id }, false);
  const filtered = Boolean(search.actor || search.module);
  return (
    <>
      <Text size="sm">
        Of what only reads a short record is kept, and no answers. Actions that change something are{' '}
        <Link to="/jobs" search={{ kind: 'action' }}>
          jobs
        </Link>
        .
      </Text>
      <Group gap="xs" className="filters">
        <TextInput
          data-filter
          label="Asked by"
          w={160}
          value={search.actor ?? ''}
          onChange={(e) => change({ actor: e.currentTarget.value })}
        />
        <TextInput
          label="Module"
          w={160}
          value={search.module ?? ''}
          onChange={(e) => change({ module: e.currentTarget.value })}
        />
      </Group>
      <ListOf
        label="Calls"
        list={list}
        columns={columns(open)}
        rowKey={(c) => c.id}
        onOpen={open}
        empty={
          filtered ? (
            <Empty title="No call is like that">
              <button type="button" className="as-link" onClick={() => change({ actor: '', module: '' })}>
                Show all calls
              </button>
            </Empty>
          ) : (
            <Empty title="Nothing was asked yet">
              <Text size="sm">Choose a module and an action that only reads, and ask nodes.</Text>
            </Empty>
          )
        }
      />
      {search.call && <Call id={search.call} close={() => change({ call: '' }, false)} />}
      <CommandLine
        line={
          search.call
            ? commandLine('action', 'status', search.call)
            : commandLine('action', 'status', '--kind', 'call', ...flags({ by: search.actor }))
        }
      />
    </>
  );
}

function Call({ id, close }: { id: string; close: () => void }) {
  const asked = useAsk('action.call', { call: id });
  const c = asked.data;
  return (
    <Modal opened onClose={close} size="lg" title={`Call ${id}`} closeButtonProps={{ 'aria-label': 'Close' }}>
      {asked.error && <Failure error={asked.error} again={() => void asked.refetch()} />}
      {!c && !asked.error && <Coming />}
      {c && (
        <dl className="pairs">
          <dt>Action</dt>
          <dd className="mono">
            {c.module} {c.action}
          </dd>
          <dt>Input</dt>
          <dd className="mono">{visible(c.input)}</dd>
          <dt>Nodes</dt>
          <dd>
            {many(c.nodes, 'node')}: <span className="mono">{visible(c.targets)}</span>
          </dd>
          <dt>Answers</dt>
          <dd>
            <Group gap="xs">
              {Object.entries(c.counts ?? {}).map(([state, n]) => (
                <span key={state}>
                  {count(n)} <AnswerState of={state} />
                </span>
              ))}
            </Group>
            {c.left && <State of="left">who asked left before all had answered</State>}
          </dd>
          <dt>Asked</dt>
          <dd>
            by {c.actor} <Time at={c.began_at} />, took{' '}
            {duration((Date.parse(c.ended_at) - Date.parse(c.began_at)) / 1000)}
          </dd>
        </dl>
      )}
    </Modal>
  );
}
