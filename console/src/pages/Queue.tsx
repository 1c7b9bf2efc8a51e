import { useState } from 'react';
import type { Compilation, CompileQueueStatus } from '../api/client';
import { useAct, useAsk, useList } from '../data/query';
import { useMay } from '../data/session';
import { Link, nodeAddress, useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Group, IconPlayerPause, IconPlayerPlay, SimpleGrid, Table, Text, TextInput } from '../ui/kit';
import { ActButton, ActDialog, Coming, CommandLine, Empty, Failure, Page, Place, State, Time } from '../ui/parts';
import { commandLine, count, duration, flags, many, short, visible } from '../ui/words';
import { ListOf } from './ListOf';

const columns: Column<Compilation>[] = [
  {
    key: 'node',
    title: 'Node',
    width: 'minmax(140px, 3fr)',
    cell: (c) => (
      <Link to={nodeAddress(c.node)} className="plain">
        {c.node}
      </Link>
    ),
  },
  { key: 'state', title: 'State', width: '110px', cell: (c) => <State of={c.state} /> },
  { key: 'lane', title: 'Why', width: '120px', from: 600, cell: (c) => c.priority.replaceAll('_', ' ') },
  { key: 'environment', title: 'Environment', width: 'minmax(90px, 1fr)', from: 1200, cell: (c) => c.environment },
  {
    key: 'version',
    title: 'Version',
    width: '120px',
    from: 1200,
    cell: (c) => <span className="mono">{short(c.version)}</span>,
  },
  {
    key: 'error',
    title: 'What is wrong',
    width: 'minmax(120px, 2fr)',
    from: 900,
    cell: (c) => {
      const text = visible(c.error?.message ?? c.trouble ?? '');
      return <span title={text}>{text}</span>;
    },
  },
  {
    key: 'place',
    title: 'Place',
    width: 'minmax(110px, 1fr)',
    from: 1200,
    cell: (c) => <Place file={c.error?.file} line={c.error?.line} />,
  },
  {
    key: 'took',
    title: 'Took',
    width: '70px',
    end: true,
    from: 600,
    cell: (c) => (c.wall_ms > 0 ? duration(c.wall_ms / 1000) : ''),
  },
  { key: 'at', title: 'Wanted', width: '100px', from: 600, cell: (c) => <Time at={c.wanted_at} /> },
];

/** What waits to be compiled and why, what is compiled now, and what came of it. */
export function Queue() {
  const [search, change] = useSearch();
  const queue = useAsk('compile.queue', {}, { every: 10_000 });
  const filter = { state: search.state, node: search.node };
  const list = useList('compile.list', filter, { every: 10_000 });
  return (
    <Page title="Compile queue" name="Compile queue" actions={queue.data && <Acts q={queue.data} />}>
      {queue.error && <Failure error={queue.error} again={() => void queue.refetch()} />}
      {queue.isPending && !queue.error && <Coming lines={3} />}
      {queue.data && <Standing q={queue.data} />}
      <Group gap="xs" className="filters">
        <Choice
          label="State"
          any="Any state"
          width={150}
          data={['wanted', 'running', 'done', 'failed']}
          value={search.state}
          set={(state) => change({ state })}
        />
        <TextInput
          label="Node"
          data-filter
          w={220}
          value={search.node ?? ''}
          onChange={(e) => change({ node: e.currentTarget.value })}
        />
      </Group>
      <ListOf
        label="Compilations"
        list={list}
        columns={columns}
        rowKey={(c) => String(c.id)}
        empty={
          <Empty title="Nothing is compiled, and nothing waits">
            <Text size="sm">Catalogs are compiled when code, facts or what they read change.</Text>
          </Empty>
        }
      />
      <CommandLine line={commandLine('compile', 'queue', ...flags(filter))} />
    </Page>
  );
}

function Standing({ q }: { q: CompileQueueStatus }) {
  const lanes = q.lanes ?? [];
  return (
    <section className="card" aria-label="How the queue stands">
      <SimpleGrid cols={{ base: 2, xs: 4 }} spacing="sm">
        <Number n={q.running} text="running" />
        <Number n={q.wanted} text="waiting" />
        <Number n={q.resting} text="resting after a failure" />
        <div>
          <div className="number" data-zero={!q.oldest}>
            <Time at={q.oldest} />
          </div>
          <Text size="sm">the oldest</Text>
        </div>
      </SimpleGrid>
      {(q.pauses ?? []).map((p) => (
        <Text size="sm" key={p.environment ?? ''} mt={6} component="div">
          <State of="paused">paused{p.environment ? ` for ${p.environment}` : ''}</State> by {p.by} <Time at={p.at} />
          {p.reason && `: ${visible(p.reason)}`}
        </Text>
      ))}
      {(q.slowed ?? []).map((s) => (
        <Text size="sm" key={`${s.environment} ${s.previews}`} mt={6} component="div">
          <State of="resting">slowed</State> {s.environment} takes too long: {many(s.timeouts, 'time')} out since{' '}
          <Time at={s.since} />
        </Text>
      ))}
      {lanes.length > 0 && (
        <Table aria-label="Lanes" mt={6} className="words" horizontalSpacing={4}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Why</Table.Th>
              <Table.Th>Environment</Table.Th>
              <Table.Th ta="right" visibleFrom="sm">
                Running
              </Table.Th>
              <Table.Th ta="right">Waiting</Table.Th>
              <Table.Th ta="right">Oldest</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {lanes.map((l) => (
              <Table.Tr key={`${l.priority} ${l.environment}`}>
                <Table.Td>{l.priority.replaceAll('_', ' ')}</Table.Td>
                <Table.Td>{l.environment}</Table.Td>
                <Table.Td ta="right" visibleFrom="sm">
                  {count(l.running)}
                </Table.Td>
                <Table.Td ta="right">{count(l.wanted)}</Table.Td>
                <Table.Td ta="right">
                  <Time at={l.oldest} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {(q.ended ?? []).map((e) => (
        <Text size="sm" c="dimmed" key={`${e.environment} ${e.seconds}`} mt={4}>
          {e.environment}, the last {duration(e.seconds)}: {count(e.compiled)} compiled, {count(e.reused)} reused,{' '}
          {count(e.failed)} failed
        </Text>
      ))}
    </section>
  );
}

function Number({ n, text }: { n: number; text: string }) {
  return (
    <div>
      <div className="number" data-zero={n === 0}>
        {count(n)}
      </div>
      <Text size="sm">{text}</Text>
    </div>
  );
}

function Acts({ q }: { q: CompileQueueStatus }) {
  const may = useMay('compile:pause');
  const [asked, setAsked] = useState<'pause' | 'resume'>();
  const [environment, setEnvironment] = useState('');
  const [reason, setReason] = useState('');
  const pause = useAct('compile.pause', ['compile.queue']);
  const resume = useAct('compile.resume', ['compile.queue']);
  const environments = useAsk('environment.list', {}, { enabled: asked === 'pause' });
  const pauses = q.pauses ?? [];
  const close = () => setAsked(undefined);
  const open = (what: 'pause' | 'resume') => {
    setEnvironment(what === 'resume' ? (pauses[0]?.environment ?? '') : '');
    setReason('');
    setAsked(what);
  };
  const acts = asked === 'resume' ? resume : pause;
  return (
    <>
      {pauses.length > 0 && (
        <ActButton {...may} leftSection={<IconPlayerPlay size={16} />} onClick={() => open('resume')}>
          Go on…
        </ActButton>
      )}
      <ActButton {...may} variant="default" leftSection={<IconPlayerPause size={16} />} onClick={() => open('pause')}>
        Pause…
      </ActButton>
      <ActDialog
        title={asked === 'resume' ? 'Let compiling go on' : 'Pause compiling'}
        opened={asked !== undefined}
        close={close}
        act={() =>
          asked === 'resume'
            ? resume.mutate({ environment: environment || undefined }, { onSuccess: close })
            : pause.mutate({ environment: environment || undefined, reason: reason || undefined }, { onSuccess: close })
        }
        word={asked === 'resume' ? 'Go on' : 'Pause'}
        busy={acts.isPending}
        error={acts.error}
        line={commandLine(
          'compile',
          asked ?? 'pause',
          ...flags({ environment, reason: asked === 'pause' ? reason : undefined }),
        )}
      >
        <Choice
          label="Environment"
          any="All environments"
          placeholder="all environments"
          data={
            asked === 'resume'
              ? pauses.map((p) => p.environment ?? '').filter(Boolean)
              : (environments.data?.items ?? []).map((v) => v.environment)
          }
          value={environment}
          set={setEnvironment}
        />
        {asked === 'pause' && (
          <>
            <Text size="sm">
              Nothing begins to be compiled until somebody lets it go on. Nodes keep the catalogs they have.
            </Text>
            <TextInput
              label="Why"
              description="Whoever waits is told"
              value={reason}
              onChange={(e) => setReason(e.currentTarget.value)}
            />
          </>
        )}
      </ActDialog>
    </>
  );
}
