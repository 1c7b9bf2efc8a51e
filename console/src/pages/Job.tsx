import { useMemo, useState } from 'react';
import type { Job, JobEvent, JobRun } from '../api/client';
import { useCalmly, useStream } from '../data/live';
import { useAct, useAgain, useAsk, useList } from '../data/query';
import { useMay } from '../data/session';
import { Link, nodeAddress, useGo, usePart, useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import {
  Checkbox,
  Group,
  IconPlayerStop,
  IconRotateClockwise,
  SegmentedControl,
  Stack,
  Text,
  useDisclosure,
} from '../ui/kit';
import {
  ActButton,
  ActDialog,
  Bar,
  Coming,
  CommandLine,
  Empty,
  Failure,
  Page,
  State,
  Time,
  Whisper,
} from '../ui/parts';
import { commandLine, count, duration, many, titleOf, visible, wordOf } from '../ui/words';
import { Crumbs } from './Crumbs';
import { ListOf } from './ListOf';
import { formOf } from './order/again';

const over = ['finished', 'failed', 'stopped'];

/** A job as it goes on: its numbers, its runs, what they wrote. Another job is another page. */
export function JobPage() {
  const id = usePart('job');
  return <OneJob key={id} id={id} />;
}

/** How long the list of a job's runs stays as it is while they change, in milliseconds: longer where there are many nodes, and many may watch. */
export function calmOf(nodes: number): number {
  return Math.min(5000, Math.max(1000, nodes / 2));
}

/**
 * A job as it is by now. Its stream is followed to its own end, also when the job is known to be over before. The stream says how many runs
 * are in which state; the runs that are shown are asked for again.
 */
export function useJob(id: string) {
  const show = useAsk('job.show', { job: id });
  const [newest, setNewest] = useState<Job>();
  const again = useAgain();
  const asked = show.data;
  const moved = useCalmly(() => again('job.runs'), calmOf(asked?.nodes ?? 0));
  const take = (e: JobEvent) => {
    if (!e.job) return;
    setNewest(e.job);
    if (over.includes(e.job.state)) again('job.runs');
    else moved();
  };
  const ended = asked !== undefined && over.includes(asked.state);
  const [follows, setFollows] = useState(false);
  if (asked && !ended && !follows) setFollows(true);
  const link = useStream('job.events', follows ? { job: id, summary: true } : undefined, take);
  return { show, job: ended ? asked : (newest ?? asked), link };
}

function OneJob({ id }: { id: string }) {
  const [search, change] = useSearch();
  const { show, job, link } = useJob(id);
  if (show.error) return <Failure error={show.error} again={() => void show.refetch()} />;
  if (!job) return <Coming />;
  const view = search.view === 'output' ? 'output' : 'runs';
  return (
    <Page
      name={`Job ${id}`}
      title={
        <Group gap="sm">
          <span>{titleOf(job)}</span>
          <State of={job.state} />
          {link === 'lost' && <State of="lost">reconnecting</State>}
        </Group>
      }
      above={
        <Crumbs to="/jobs" of="Jobs">
          {id}
        </Crumbs>
      }
      actions={<Acts job={job} />}
    >
      <Numbers job={job} />
      <SegmentedControl
        aria-label="What is shown"
        size="xs"
        style={{ alignSelf: 'flex-start' }}
        data={[
          { value: 'runs', label: 'Runs' },
          { value: 'output', label: 'Output' },
        ]}
        value={view}
        onChange={(v) => change({ view: v === 'runs' ? '' : v })}
      />
      {view === 'runs' ? <RunsOf job={job} /> : <Output job={id} over={over.includes(job.state)} />}
      <CommandLine line={commandLine('job', over.includes(job.state) ? 'show' : 'watch', id)} />
      <Whisper text={`${job.state}: ${told(job)}`} />
    </Page>
  );
}

/** How long it took; empty: it did not begin, or goes on. */
function took({ started_at, finished_at }: { started_at?: string; finished_at?: string }): string {
  return started_at && finished_at ? duration((Date.parse(finished_at) - Date.parse(started_at)) / 1000) : '';
}

function told(job: Job): string {
  return Object.entries(job.counts ?? {})
    .filter(([, n]) => n > 0)
    .map(([state, n]) => `${count(n)} ${wordOf(state).text}`)
    .join(', ');
}

/** The states of runs, what needs somebody first. */
const order = [
  'failed',
  'lost',
  'errored',
  'timed_out',
  'refused',
  'killed',
  'offline',
  'skipped',
  'running',
  'sent',
  'waiting',
  'succeeded',
];

function Numbers({ job }: { job: Job }) {
  const [search, change] = useSearch();
  const parts = order.map((state) => ({ state, n: job.counts?.[state] ?? 0 }));
  return (
    <section className="card" aria-label="Numbers">
      <Bar parts={parts} label={told(job)} />
      <Group gap="md" mt="sm">
        {parts
          .filter((p) => p.n > 0)
          .map((p) => (
            <button
              type="button"
              key={p.state}
              className="as-link"
              aria-pressed={search.state === p.state}
              onClick={() => change({ state: search.state === p.state ? '' : p.state, view: '' })}
            >
              {count(p.n)} <State of={p.state} />
            </button>
          ))}
      </Group>
      <Text size="sm" c="dimmed" mt="sm">
        {many(job.nodes, 'node')}, {job.kind}
        {job.noop ? ', noop' : ''}, ordered by {job.actor} <Time at={job.created_at} />
        {job.started_at && job.finished_at && `, took ${took(job)}`}
        {job.description && `, “${visible(job.description)}”`}
        {job.reason && `. ${job.reason}`}
        {job.rerun_of && (
          <>
            , again from job <Link to={`/jobs/${job.rerun_of}`}>{job.rerun_of}</Link>
          </>
        )}
      </Text>
      <Ordered job={job} />
    </section>
  );
}

/** What every node is asked to do, and the nodes as they were asked for. */
function Ordered({ job }: { job: Job }) {
  const form = formOf(job);
  return (
    <Group gap="md" mt={4} align="flex-start">
      <details className="nodes">
        <summary>What was ordered</summary>
        <pre className="output">{visible(JSON.stringify({ order: job.order, targets: job.targets }, null, 1))}</pre>
      </details>
      {form && (
        <Link to={form.to} search={form.search}>
          The form that it came from, filled in
        </Link>
      )}
    </Group>
  );
}

const columns: Column<JobRun>[] = [
  {
    key: 'node',
    title: 'Node',
    width: 'minmax(140px, 1.5fr)',
    cell: (r) => (
      <Link to={nodeAddress(r.node)} className="plain">
        {r.node}
      </Link>
    ),
  },
  { key: 'state', title: 'State', width: '120px', cell: (r) => <State of={r.state} /> },
  {
    key: 'reason',
    title: 'What came of it',
    width: 'minmax(140px, 3fr)',
    from: 600,
    cell: (r) => {
      const text = outcome(r);
      return <span title={text}>{text}</span>;
    },
  },
  {
    key: 'took',
    title: 'Took',
    width: '80px',
    end: true,
    from: 600,
    cell: took,
  },
];

function outcome(r: JobRun): string {
  const p = r.puppet;
  if (p?.first_failed) return visible(`${p.first_failed}: ${p.message ?? ''}`);
  if (p && r.state === 'succeeded') return p.pending ? `would change ${p.pending}` : p.status;
  return visible(r.reason ?? '');
}

function RunsOf({ job }: { job: Job }) {
  const [search, change] = useSearch();
  const go = useGo();
  const list = useList('job.runs', { job: job.id, state: search.state });
  return (
    <ListOf
      label="Runs"
      columns={columns}
      list={list}
      rows={list.rows}
      rowKey={(r) => r.node}
      total={search.state ? (job.counts?.[search.state] ?? 0) : job.nodes}
      onOpen={(r) => go(nodeAddress(r.node))}
      empty={
        <Empty title="No run is in this state">
          <button type="button" className="as-link" onClick={() => change({ state: '' })}>
            Show all
          </button>
        </Empty>
      }
    />
  );
}

function Output({ job, over: ended }: { job: string; over: boolean }) {
  const list = useList('job.output', { job }, { every: 10_000 });
  const blocks = useMemo(() => {
    const byNode = new Map<string, string[]>();
    for (const line of list.rows) byNode.set(line.node, [...(byNode.get(line.node) ?? []), line.text]);
    const byText = new Map<string, string[]>();
    for (const [node, lines] of byNode) {
      const text = lines.join('\n');
      byText.set(text, [...(byText.get(text) ?? []), node]);
    }
    return [...byText].toSorted((a, b) => b[1].length - a[1].length);
  }, [list.rows]);
  if (list.error) return <Failure error={list.error} again={list.again} />;
  if (list.loading) return <Coming />;
  if (blocks.length === 0) {
    return (
      <div className="page-scroll">
        <Empty title={ended ? 'No run wrote anything' : 'Nothing was written yet'}>
          <Text size="sm">What tasks, commands and scripts write is here. What Puppet did is in the node’s runs.</Text>
        </Empty>
      </div>
    );
  }
  return (
    <Stack gap="sm" className="page-scroll">
      {blocks.slice(0, 200).map(([text, nodes]) => (
        <section className="card" key={nodes[0]} aria-label={`Output of ${nodes[0]}`}>
          <Text size="sm" fw={600} mb={4}>
            {nodes.length === 1
              ? nodes[0]
              : `the same on ${count(nodes.length)} nodes: ${nodes.slice(0, 4).join(', ')}${nodes.length > 4 ? ' …' : ''}`}
          </Text>
          <pre className="output">{visible(text.slice(0, 100_000))}</pre>
        </section>
      ))}
      {!list.whole && (
        <button type="button" className="as-link" onClick={list.more}>
          More lines
        </button>
      )}
    </Stack>
  );
}

function Acts({ job }: { job: Job }) {
  const go = useGo();
  const [stops, stopping] = useDisclosure();
  const [reruns, rerunning] = useDisclosure();
  const [kill, setKill] = useState(false);
  const [all, setAll] = useState(false);
  const stop = useAct('job.stop', ['job.show', 'job.list']);
  const rerun = useAct('job.rerun', ['job.list']);
  const mayStop = useMay('job:stop');
  const mayRun = useMay(job.kind === 'file' ? 'file:send' : `${job.kind}:run`);
  const left = (job.counts?.waiting ?? 0) + (job.counts?.sent ?? 0);
  return (
    <>
      {over.includes(job.state) ? (
        <ActButton
          {...mayRun}
          variant="default"
          leftSection={<IconRotateClockwise size={16} />}
          onClick={rerunning.open}
        >
          Run again…
        </ActButton>
      ) : (
        <ActButton {...mayStop} variant="default" leftSection={<IconPlayerStop size={16} />} onClick={stopping.open}>
          Stop…
        </ActButton>
      )}
      <ActDialog
        title={`Stop job ${job.id}`}
        opened={stops}
        close={stopping.close}
        act={() => stop.mutate({ job: job.id, kill: kill || undefined }, { onSuccess: stopping.close })}
        word="Stop"
        danger
        busy={stop.isPending}
        error={stop.error}
        line={commandLine('job', 'stop', job.id, kill && '--kill')}
      >
        <Text size="sm">
          {many(left, 'run')} will not begin. {many(job.counts?.running ?? 0, 'run')}{' '}
          {kill ? 'will be ended.' : 'will go on to their end.'}
        </Text>
        <Checkbox label="Also end what runs now" checked={kill} onChange={(e) => setKill(e.currentTarget.checked)} />
      </ActDialog>
      <ActDialog
        title={`Run job ${job.id} again`}
        opened={reruns}
        close={rerunning.close}
        act={() =>
          rerun.mutate(
            { job: job.id, only: all ? 'all' : 'failed' },
            {
              onSuccess: (started) => {
                rerunning.close();
                go(`/jobs/${started.job?.id}`);
              },
            },
          )
        }
        word="Run again"
        busy={rerun.isPending}
        error={rerun.error}
        line={commandLine('job', 'rerun', job.id, all && '--all')}
      >
        <Text size="sm">{all ? `On all ${many(job.nodes, 'node')}.` : 'On the nodes where it did not succeed.'}</Text>
        <Checkbox
          label="On all nodes, also where it succeeded"
          checked={all}
          onChange={(e) => setAll(e.currentTarget.checked)}
        />
      </ActDialog>
    </>
  );
}
