import { useState } from 'react';
import type { Refusal, ReleaseReport, ReleaseTarget, ReleaseWave } from '../api/client';
import { useCalmly, useStream } from '../data/live';
import { useAct, useAgain, useAsk, useList } from '../data/query';
import { useMay } from '../data/session';
import { Link, nodeAddress, useGo, usePart, useSearch } from '../routes/router';
import { DataTable, type Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Checkbox, Group, SegmentedControl, Table, Text, TextInput, useDisclosure } from '../ui/kit';
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
import { commandLine, count, many, short, visible, wordOf } from '../ui/words';
import { RollbackDialog } from './change/ReleaseDialog';
import { Crumbs } from './Crumbs';
import { sourceOf } from './Releases';

const over = ['done', 'done_with_failures', 'aborted'];

/** The states of a release's nodes, what needs somebody first. */
const standings = [
  'failed',
  'foreign',
  'timed_out',
  'refused',
  'superseded',
  'offline',
  'skipped',
  'applying',
  'sent',
  'waiting',
  'changed',
  'ok',
];

/** A release as it goes on: its waves, its nodes, what was decided. */
export function ReleasePage() {
  const id = usePart('release');
  return <OneRelease key={id} id={id} />;
}

function OneRelease({ id }: { id: string }) {
  const [search, change] = useSearch();
  const show = useAsk('release.show', { release: id }, { every: 10_000 });
  const again = useAgain();
  const r = show.data;
  const wave = r && !over.includes(r.state) ? r.waves?.find((w) => w.number === r.wave) : undefined;
  const job = wave && wave.state !== 'ended' ? (wave.job ?? wave.rehearsal) : undefined;
  // The job of the wave says when something moved.
  const moved = useCalmly(() => again('release.show', 'release.targets'), 1500);
  const link = useStream('job.events', job ? { job } : undefined, moved);
  if (show.error && !r) return <Failure error={show.error} again={() => void show.refetch()} />;
  if (!r) return <Coming />;
  const log = search.view === 'log';
  return (
    <Page
      name={`Release ${id}`}
      title={
        <Group gap="sm">
          <span>{visible(r.description || `Release ${id}`)}</span>
          <State of={r.state} />
          {link === 'lost' && <State of="lost">reconnecting</State>}
        </Group>
      }
      above={
        <Crumbs to="/releases" of="Releases">
          {id}
        </Crumbs>
      }
      actions={<Acts r={r} />}
    >
      {show.error && <Failure error={show.error} />}
      <Numbers r={r} />
      <Waves r={r} chosen={search.wave} choose={(n) => change({ wave: n, view: '' })} />
      <SegmentedControl
        aria-label="What is shown"
        size="xs"
        style={{ alignSelf: 'flex-start' }}
        data={[
          { value: 'nodes', label: 'Nodes' },
          { value: 'log', label: 'What happened' },
        ]}
        value={log ? 'log' : 'nodes'}
        onChange={(v) => change({ view: v === 'log' ? 'log' : '' })}
      />
      {log ? <Log r={r} /> : <Targets r={r} />}
      <CommandLine
        line={
          log
            ? commandLine('release', over.includes(r.state) ? 'show' : 'watch', id)
            : commandLine(
                'release',
                'nodes',
                id,
                search.state && '--state',
                search.state,
                search.wave && '--wave',
                search.wave,
              )
        }
      />
      <Whisper text={`${r.state}: ${told(r)}`} />
    </Page>
  );
}

function told(r: ReleaseReport): string {
  return standings
    .filter((state) => (r.counts?.[state] ?? 0) > 0)
    .map((state) => `${count(r.counts?.[state] ?? 0)} ${wordOf(state).text}`)
    .join(', ');
}

function Numbers({ r }: { r: ReleaseReport }) {
  const parts = standings.map((state) => ({ state, n: r.counts?.[state] ?? 0 })).filter((s) => s.n > 0);
  const budget = r.options.max_failures;
  return (
    <section className="card" aria-label="Numbers">
      {r.reason && (
        <Text size="sm" fw={600} mb={6}>
          {visible(r.reason)}
          {r.until && (
            <>
              {' '}
              until <time dateTime={r.until}>{new Date(r.until).toLocaleString()}</time>
            </>
          )}
        </Text>
      )}
      <Bar parts={parts} label={told(r)} />
      <Group gap="4px 16px" mt={8} fz="sm">
        {parts.map((s) => (
          <Link key={s.state} to={`/releases/${r.id}`} search={{ state: s.state }}>
            {count(s.n)} {wordOf(s.state).text}
          </Link>
        ))}
        <span className={r.failures > 0 ? 'many-bad' : undefined}>
          {many(r.failures, 'failure')}, {budget === undefined ? 'any number is borne' : `${count(budget)} borne`}
        </span>
      </Group>
      {(r.needs ?? []).map((n, i) => (
        <div key={i}>
          <State of={n.met ? 'succeeded' : 'waiting_approval'}>
            {n.met ? 'approved' : 'waits'} by {n.role}
          </State>{' '}
          <Text span size="sm">
            {n.message && visible(n.message)}
            {n.rule && ` (policy ${n.rule})`}
          </Text>
        </div>
      ))}
      {(r.approvals ?? []).map((a, i) => (
        <Text size="sm" key={i}>
          {a.by} approved as {a.role} <Time at={a.at} />
          {a.text && `: ${visible(a.text)}`}
        </Text>
      ))}
      <Text size="sm" c="dimmed" mt={4}>
        {r.preview ? <Link to={`/previews/${r.preview}`}>{sourceOf(r)}</Link> : null}
        {!r.preview && r.rolls_back ? <Link to={`/releases/${r.rolls_back}`}>{sourceOf(r)}</Link> : null}
        {r.environment && ` of ${r.environment}`}
        {r.version && (
          <>
            {' '}
            <span className="mono">{short(r.version)}</span>
          </>
        )}
        ; made by {r.author} <Time at={r.created_at} />
        {r.ended_at && (
          <>
            , ended <Time at={r.ended_at} />
          </>
        )}
      </Text>
      {(r.vanishing?.resources ?? 0) > 0 && (
        <Text size="sm" c="var(--warn)">
          {many(r.vanishing!.distinct, 'resource')} of {many(r.vanishing!.nodes, 'node')} vanish from catalogs and stay
          on the nodes as they are.
        </Text>
      )}
    </section>
  );
}

/** The waves, one beside the other; one that is chosen narrows the nodes. */
function Waves({ r, chosen, choose }: { r: ReleaseReport; chosen?: string; choose: (n: string) => void }) {
  const waves = r.waves ?? [];
  return (
    // What scrolls must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className="waves" aria-label="Waves" tabIndex={0}>
      {waves.map((w) => (
        <Wave
          key={w.number}
          w={w}
          current={w.number === r.wave && !over.includes(r.state)}
          chosen={chosen === String(w.number)}
          choose={choose}
        />
      ))}
    </section>
  );
}

function Wave(props: { w: ReleaseWave; current: boolean; chosen: boolean; choose: (n: string) => void }) {
  const { w } = props;
  return (
    <div className="card wave" data-current={props.current}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <button
          type="button"
          className="as-link"
          aria-pressed={props.chosen}
          onClick={() => props.choose(props.chosen ? '' : String(w.number))}
        >
          Wave {w.number} ({w.size})
        </button>
        <span className="count">{count(w.nodes)}</span>
      </Group>
      <State of={w.state} />
      <Text size="xs" c="dimmed">
        {w.ended_at ? (
          <>
            ended <Time at={w.ended_at} />
          </>
        ) : w.started_at ? (
          <>
            began <Time at={w.started_at} />
          </>
        ) : (
          'not begun'
        )}
        {w.round > 1 && `, round ${w.round}`}
        {w.rehearsal && (
          <>
            , <Link to={`/jobs/${w.rehearsal}`}>noop job {w.rehearsal}</Link>
          </>
        )}
        {w.job && (
          <>
            , <Link to={`/jobs/${w.job}`}>job {w.job}</Link>
          </>
        )}
      </Text>
    </div>
  );
}

const columns: Column<ReleaseTarget>[] = [
  {
    key: 'name',
    title: 'Node',
    width: 'minmax(140px, 2fr)',
    cell: (t) => (
      <Link to={nodeAddress(t.name)} className="plain">
        {t.name}
      </Link>
    ),
  },
  { key: 'state', title: 'State', width: '130px', cell: (t) => <State of={t.state} /> },
  { key: 'wave', title: 'Wave', width: '60px', end: true, from: 600, cell: (t) => t.wave ?? '' },
  {
    key: 'reason',
    title: 'Why',
    width: 'minmax(140px, 3fr)',
    from: 600,
    cell: (t) => {
      const text = visible(t.reason ?? '');
      return <span title={text}>{text}</span>;
    },
  },
  { key: 'generation', title: 'Generation', width: '90px', end: true, from: 900, cell: (t) => t.generation ?? '–' },
  {
    key: 'catalog',
    title: 'Catalog',
    width: '110px',
    from: 1200,
    cell: (t) => <span className="mono">{t.catalog?.slice(0, 10) ?? '–'}</span>,
  },
];

function Targets({ r }: { r: ReleaseReport }) {
  const [search, change] = useSearch();
  const go = useGo();
  const list = useList(
    'release.targets',
    { release: r.id ?? '', state: search.state, wave: search.wave ? Number(search.wave) : undefined },
    { every: over.includes(r.state) ? undefined : 10_000 },
  );
  if (list.error && list.rows.length === 0) return <Failure error={list.error} again={list.again} />;
  return (
    <>
      <Group gap="xs">
        <Choice
          label="State"
          any="Any state"
          width={150}
          data={standings.map((value) => ({ value, label: wordOf(value).text }))}
          value={search.state}
          set={(state) => change({ state })}
        />
        {search.wave && (
          <Text size="sm" mt={24}>
            wave {search.wave}{' '}
            <button type="button" className="as-link" onClick={() => change({ wave: '' })}>
              all waves
            </button>
          </Text>
        )}
      </Group>
      <DataTable
        label="Nodes of the release"
        columns={columns}
        rows={list.rows}
        rowKey={(t) => t.name}
        total={search.wave ? undefined : search.state ? (r.counts?.[search.state] ?? 0) : r.nodes}
        whole={list.whole}
        more={list.more}
        onOpen={(t) => go(nodeAddress(t.name))}
        empty={
          list.loading ? null : (
            <Empty title="No node is like that">
              <button type="button" className="as-link" onClick={() => change({ state: '', wave: '' })}>
                Show all
              </button>
            </Empty>
          )
        }
      />
    </>
  );
}

function Log({ r }: { r: ReleaseReport }) {
  return (
    // What scrolls must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className="page-scroll" aria-label="What happened, newest last" tabIndex={0}>
      <Table>
        <Table.Tbody>
          {(r.entries ?? []).map((e, i) => (
            <Table.Tr key={i}>
              <Table.Td w={110} style={{ whiteSpace: 'nowrap' }}>
                <Time at={e.at} />
              </Table.Td>
              <Table.Td w={100}>{e.by ?? 'by itself'}</Table.Td>
              <Table.Td>{visible(e.text)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}

type Asked = 'pause' | 'resume' | 'promote' | 'abort' | 'approve' | 'refresh';

/** What can be done to a release now. Two people may act: the server tells the second. */
function Acts({ r }: { r: ReleaseReport }) {
  const [asked, setAsked] = useState<Asked>();
  const [rolls, rolling] = useDisclosure();
  const control = useMay('release:control');
  const approves = useMay('release:approve');
  const makes = useMay('release:create');
  const ended = over.includes(r.state);
  const superseded = r.counts?.superseded ?? 0;
  const overBudget = r.hold === 'budget';
  const buttons: { asks: Asked; text: string; when: boolean; may: typeof control; main?: boolean }[] = [
    { asks: 'abort', text: 'Abort…', when: !ended && r.state !== 'stopping', may: control },
    { asks: 'pause', text: 'Pause…', when: r.state === 'running', may: control },
    { asks: 'refresh', text: 'Preview again…', when: superseded > 0, may: makes },
    { asks: 'approve', text: 'Approve…', when: r.state === 'waiting_approval', may: approves, main: true },
    { asks: 'promote', text: 'Next wave…', when: r.hold === 'promotion', may: control, main: true },
    {
      asks: 'resume',
      text: 'Go on…',
      when: r.state === 'paused' && r.hold !== 'promotion',
      may: control,
      main: true,
    },
  ];
  return (
    <>
      {buttons
        .filter((b) => b.when)
        .map((b) => (
          <ActButton key={b.asks} {...b.may} variant={b.main ? undefined : 'default'} onClick={() => setAsked(b.asks)}>
            {b.text}
          </ActButton>
        ))}
      {ended && (
        <ActButton {...makes} variant="default" onClick={rolling.open}>
          Roll back…
        </ActButton>
      )}
      {rolls && <RollbackDialog release={r.id ?? ''} close={rolling.close} />}
      {asked && <Ask key={asked} r={r} asked={asked} overBudget={overBudget} close={() => setAsked(undefined)} />}
    </>
  );
}

function Ask(props: { r: ReleaseReport; asked: Asked; overBudget: boolean; close: () => void }) {
  const { r, asked, close } = props;
  const id = r.id ?? '';
  const go = useGo();
  const [why, setWhy] = useState('');
  const [kill, setKill] = useState(false);
  const [budget, setBudget] = useState(props.overBudget ? String(r.failures) : '');
  const touched = ['release.show', 'release.targets', 'release.list'] as const;
  const acts = {
    pause: useAct('release.pause', [...touched]),
    resume: useAct('release.resume', [...touched]),
    promote: useAct('release.promote', [...touched]),
    abort: useAct('release.abort', [...touched]),
    approve: useAct('release.approve', [...touched]),
    refresh: useAct('release.refresh', ['preview.list']),
  };
  const next = r.waves?.find((w) => w.number === r.wave + 1);
  const atWork = (r.counts?.sent ?? 0) + (r.counts?.applying ?? 0);
  const waiting = r.counts?.waiting ?? 0;
  const forms = {
    pause: {
      title: `Pause release ${id}`,
      word: 'Pause',
      text: `${many(atWork, 'node')} at work will go on to the end; ${many(waiting, 'node')} will not begin.`,
    },
    resume: { title: `Let release ${id} go on`, word: 'Go on', text: r.reason ? visible(r.reason) : '' },
    promote: {
      title: `Let the next wave of release ${id} begin`,
      word: next ? `Begin wave ${next.number}, ${many(next.nodes, 'node')}` : 'Begin',
      text: next
        ? `Wave ${next.number} (${next.size}) is given its catalogs, and Puppet runs on ${many(next.nodes, 'node')}.`
        : 'There is no wave behind this one.',
    },
    abort: {
      title: `Abort release ${id}`,
      word: 'Abort',
      text: `${many(waiting, 'node')} will not begin. Nodes that were run keep the catalogs that they were given; a roll back gives back what they had.`,
    },
    approve: {
      title: `Approve release ${id}`,
      word: 'Approve',
      text: `Exactly these catalogs, for ${many(r.nodes, 'node')} in ${many((r.waves ?? []).length, 'wave')}. Any change makes the approval void.`,
    },
    refresh: {
      title: 'Preview the superseded nodes again',
      word: 'Preview',
      text: `${many(r.counts?.superseded ?? 0, 'node')} have other catalogs or other facts than the preview saw.`,
    },
  };
  const form = forms[asked];
  const hasWhy = asked === 'pause' || asked === 'abort' || asked === 'approve';
  const done = { onSuccess: close };
  const act = () => {
    const said = why || undefined;
    if (asked === 'pause') acts.pause.mutate({ release: id, why: said }, done);
    else if (asked === 'approve') acts.approve.mutate({ release: id, why: said }, done);
    else if (asked === 'promote') acts.promote.mutate({ release: id }, done);
    else if (asked === 'abort') acts.abort.mutate({ release: id, why: said, kill: kill || undefined }, done);
    else if (asked === 'refresh')
      acts.refresh.mutate({ release: id }, { onSuccess: (made) => go(`/previews/${made.preview}`) });
    else acts.resume.mutate({ release: id, max_failures: budget === '' ? undefined : Number(budget) }, done);
  };
  const error: Refusal | null = acts[asked].error;
  const bad = asked === 'resume' && !/^\d*$/.test(budget);
  return (
    <ActDialog
      title={form.title}
      opened
      close={close}
      act={act}
      word={form.word}
      danger={asked === 'abort'}
      busy={acts[asked].isPending}
      error={error}
      blocked={bad}
      line={commandLine(
        'release',
        asked,
        id,
        asked === 'abort' && kill && '--kill',
        hasWhy && why && '--why',
        hasWhy && why,
        asked === 'resume' && budget && '--max-failures',
        asked === 'resume' && budget,
      )}
    >
      <Text size="sm">{form.text}</Text>
      {asked === 'abort' && atWork > 0 && (
        <Checkbox
          label={`Also end what runs now on ${many(atWork, 'node')}`}
          checked={kill}
          onChange={(e) => setKill(e.currentTarget.checked)}
        />
      )}
      {asked === 'resume' && (
        <TextInput
          label="How many nodes may fail in all"
          description={
            props.overBudget ? `${r.failures} failed so far; a larger number lets it go on` : 'Empty: as it is'
          }
          error={bad ? 'a number of nodes' : undefined}
          inputMode="numeric"
          value={budget}
          onChange={(e) => setBudget(e.currentTarget.value.trim())}
        />
      )}
      {hasWhy && <TextInput label="Why" value={why} onChange={(e) => setWhy(e.currentTarget.value)} />}
    </ActDialog>
  );
}
