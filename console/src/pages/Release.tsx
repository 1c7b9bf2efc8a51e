import type { ReleaseReport, ReleaseTarget, ReleaseWave } from '../api/client';
import { useCalmly, useStream } from '../data/live';
import { useAgain, useAsk, useList } from '../data/query';
import { Link, nodeAddress, useGo, usePart, useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Group, SegmentedControl, Table, Text } from '../ui/kit';
import { Bar, Coming, CommandLine, Empty, Failure, Page, State, Time, Whisper } from '../ui/parts';
import { commandLine, count, many, short, visible, wordOf } from '../ui/words';
import { sourceOf } from './change/source';
import { Crumbs } from './Crumbs';
import { Acts, isOver } from './release/Acts';
import { ListOf } from './ListOf';

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
  const wave = r && !isOver(r) ? r.waves?.find((w) => w.number === r.wave) : undefined;
  const job = wave && wave.state !== 'ended' ? (wave.job ?? wave.rehearsal) : undefined;
  // The job of the wave says when something moved.
  const moved = useCalmly(() => again('release.show', 'release.targets'), 1500);
  const link = useStream('job.events', job ? { job, summary: true } : undefined, moved);
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
            ? commandLine('release', isOver(r) ? 'show' : 'watch', id)
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
          <Link
            key={s.state}
            to={`/releases/${r.id}`}
            search={{ state: s.state }}
            className={wordOf(s.state).tone === 'bad' ? 'many-bad' : undefined}
          >
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
          release={r.id ?? ''}
          current={w.number === r.wave && !isOver(r)}
          chosen={chosen === String(w.number)}
          choose={choose}
        />
      ))}
    </section>
  );
}

/** States in which a node of a release stays. */
const ends = ['failed', 'foreign', 'timed_out', 'refused', 'superseded', 'offline', 'skipped', 'changed', 'ok'];

/** How many nodes of a wave are through. */
function through(w: ReleaseWave): number {
  return ends.reduce((n, state) => n + (w.counts?.[state] ?? 0), 0);
}

interface WaveProps {
  w: ReleaseWave;
  release: string;
  current: boolean;
  chosen: boolean;
  choose: (n: string) => void;
}

function Wave(props: WaveProps) {
  const { w } = props;
  const parts = standings.map((state) => ({ state, n: w.counts?.[state] ?? 0 })).filter((s) => s.n > 0);
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
        <span className="count">
          {w.counts && w.started_at ? `${count(through(w))} / ${count(w.nodes)}` : count(w.nodes)}
        </span>
      </Group>
      <Bar
        parts={parts}
        label={`Wave ${w.number}: ${parts.map((s) => `${count(s.n)} ${wordOf(s.state).text}`).join(', ') || w.state}`}
      />
      <Group gap="2px 10px" fz="xs" my={4}>
        <State of={w.state} />
        {w.started_at &&
          parts.map((s) => (
            <Link
              key={s.state}
              to={`/releases/${props.release}`}
              search={{ wave: String(w.number), state: s.state }}
              className={wordOf(s.state).tone === 'bad' ? 'many-bad' : undefined}
              label={`${count(s.n)} ${wordOf(s.state).text} in wave ${w.number}`}
            >
              {count(s.n)} {wordOf(s.state).text}
            </Link>
          ))}
      </Group>
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
  { key: 'wave', title: 'Wave', width: '60px', end: true, from: 600, cell: (t) => t.wave ?? '–' },
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
    { every: isOver(r) ? undefined : 10_000 },
  );
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
      <ListOf
        label="Nodes of the release"
        columns={columns}
        list={list}
        rowKey={(t) => t.name}
        total={search.wave ? undefined : search.state ? (r.counts?.[search.state] ?? 0) : r.nodes}
        onOpen={(t) => go(nodeAddress(t.name))}
        empty={
          <Empty title="No node is like that">
            <button type="button" className="as-link" onClick={() => change({ state: '', wave: '' })}>
              Show all
            </button>
          </Empty>
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
