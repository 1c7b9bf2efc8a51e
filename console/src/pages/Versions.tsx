import { lazy, Suspense, useState } from 'react';
import type { CodeStatus, Version } from '../api/client';
import { useAsk } from '../data/query';
import { useMay } from '../data/session';
import { useSearch } from '../routes/router';
import { DataTable, type Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Group, SegmentedControl, Text } from '../ui/kit';
import { ActButton, Bar, Coming, CommandLine, Empty, Failure, Page, State, Time } from '../ui/parts';
import { commandLine, count, many, short, visible } from '../ui/words';
import { PreviewDialog } from './change/PreviewDialog';

const Mistakes = lazy(() => import('./versions/Mistakes'));
const Spread = lazy(() => import('./versions/Spread'));
const Sources = lazy(() => import('./versions/Sources'));

const columns = (current: string, preview: (v: Version) => void): Column<Version>[] => [
  {
    key: 'id',
    title: 'Version',
    width: 'minmax(120px, 1fr)',
    cell: (v) => (
      <span className="mono" title={v.id}>
        {short(v.id)}
      </span>
    ),
  },
  {
    key: 'now',
    title: 'Now',
    width: '90px',
    cell: (v) => (v.id === current ? <State of="current" /> : ''),
  },
  { key: 'at', title: 'Deployed', width: '100px', cell: (v) => <Time at={v.deployed_at} /> },
  { key: 'by', title: 'By', width: 'minmax(80px, 1fr)', from: 600, cell: (v) => v.actor ?? '–' },
  {
    key: 'commit',
    title: 'Commit',
    width: '120px',
    from: 600,
    cell: (v) => (
      <span className="mono" title={v.commit}>
        {short(v.commit)}
      </span>
    ),
  },
  {
    key: 'origin',
    title: 'Origin',
    width: 'minmax(100px, 2fr)',
    from: 1200,
    cell: (v) => <span title={v.origin}>{visible(v.origin ?? '–')}</span>,
  },
  { key: 'files', title: 'Files', width: '60px', end: true, from: 900, cell: (v) => count(v.files) },
  {
    key: 'preview',
    title: 'Preview',
    width: '86px',
    from: 600,
    cell: (v) => (
      <button type="button" className="as-link" onClick={() => preview(v)} aria-label={`Preview ${short(v.id)}`}>
        Preview…
      </button>
    ),
  },
];

/** The code of an environment: what was deployed, how nodes stand to it, what is wrong in it. */
export function Versions() {
  const [search, change] = useSearch();
  const environments = useAsk('environment.list', {});
  const names = (environments.data?.items ?? []).map((v) => v.environment);
  const environment = search.environment || (names.includes('production') ? 'production' : (names[0] ?? ''));
  const view = search.view ?? 'versions';
  const [wanted, setWanted] = useState<{ version?: string }>();
  const may = useMay('preview:create');
  const empty = environments.isSuccess && names.length === 0;
  const lines: Record<string, string> = {
    versions: commandLine('code', 'versions', environment || 'production'),
    spread: commandLine('code', 'spread', environment || 'production'),
    mistakes: commandLine('code', 'status', environment || 'production', '--check'),
    sources: commandLine('code', 'source', 'list'),
  };
  return (
    <Page
      title="Versions"
      name="Versions"
      actions={
        environment ? (
          <ActButton {...may} onClick={() => setWanted({})}>
            Preview…
          </ActButton>
        ) : undefined
      }
    >
      {wanted && environment && (
        <PreviewDialog environment={environment} version={wanted.version} close={() => setWanted(undefined)} />
      )}
      {environments.error && <Failure error={environments.error} again={() => void environments.refetch()} />}
      {environments.isPending && !environments.error && <Coming />}
      {!empty && names.length > 0 && (
        <Group gap="md" align="flex-end">
          <Choice
            label="Environment"
            any="The first environment"
            width={190}
            data={names}
            value={environment}
            set={(next) => change({ environment: next })}
          />
          <SegmentedControl
            aria-label="What is shown"
            size="xs"
            data={[
              { value: 'versions', label: 'Versions' },
              { value: 'spread', label: 'On nodes' },
              { value: 'mistakes', label: 'Mistakes' },
              { value: 'sources', label: 'Sources' },
            ]}
            value={view}
            onChange={(v) => change({ view: v === 'versions' ? '' : v }, false)}
          />
        </Group>
      )}
      {empty && view !== 'sources' && (
        <Empty title="No code was deployed yet">
          <Text size="sm">Deploy a directory or a git repository, or let the server follow one.</Text>
          <CommandLine line="tutti code deploy production ./control-repo" />
          <button type="button" className="as-link" onClick={() => change({ view: 'sources' })}>
            Sources
          </button>
        </Empty>
      )}
      {environment && view !== 'sources' && (
        <Environment environment={environment} view={view} preview={(v) => setWanted({ version: v.id })} />
      )}
      {view === 'sources' && (
        <Suspense fallback={<Coming />}>
          <Sources />
        </Suspense>
      )}
      {(environment || view === 'sources') && <CommandLine line={lines[view] ?? ''} />}
    </Page>
  );
}

function Environment(props: { environment: string; view: string; preview: (v: Version) => void }) {
  const { environment } = props;
  const may = useMay('preview:create');
  const status = useAsk('environment.status', { environment }, { every: 10_000 });
  const versions = useAsk('version.list', { environment }, { every: 10_000 });
  if (status.error && !status.data) return <Failure error={status.error} again={() => void status.refetch()} />;
  return (
    <>
      {status.error && <Failure error={status.error} again={() => void status.refetch()} />}
      {status.data && <Standing s={status.data} />}
      {props.view === 'spread' ? (
        <Suspense fallback={<Coming />}>
          <Spread environment={environment} />
        </Suspense>
      ) : props.view === 'mistakes' ? (
        <Suspense fallback={<Coming />}>{status.data && <Mistakes s={status.data} />}</Suspense>
      ) : versions.error ? (
        <Failure error={versions.error} again={() => void versions.refetch()} />
      ) : (
        <DataTable
          label={`Versions of ${environment}`}
          columns={columns(status.data?.version ?? '', props.preview).filter((c) => may.may || c.key !== 'preview')}
          rows={versions.data?.items ?? []}
          rowKey={(v) => `${v.id} ${v.deployed_at}`}
          whole
          empty={versions.isPending ? null : <Empty title="Nothing was deployed to it" />}
        />
      )}
    </>
  );
}

/** How the nodes of an environment stand to its current version. */
function Standing({ s }: { s: CodeStatus }) {
  const parts = [
    { state: 'failed', n: s.failed, text: 'do not compile' },
    { state: 'held', n: s.held, text: 'held' },
    { state: 'waiting', n: s.waiting, text: 'wait to be compiled' },
    { state: 'unknown', n: s.unknown, text: 'not known' },
    { state: 'current', n: s.current, text: 'current' },
  ].filter((p) => p.n > 0);
  const told = parts.map((p) => `${count(p.n)} ${p.text}`).join(', ');
  const mistakes = s.check?.mistakes ?? 0;
  return (
    <section className="card" aria-label={`How nodes stand to ${s.environment}`}>
      <Text size="sm" mb={6}>
        Version <span className="mono">{short(s.version)}</span>, deployed <Time at={s.deployed_at} />.{' '}
        {many(s.nodes, 'node')}
        {told && `: ${told}`}
      </Text>
      {parts.length > 0 && <Bar parts={parts} label={told} />}
      {mistakes > 0 && (
        <div>
          <State of="mistake">{many(mistakes, 'mistake')} in its files</State>
        </div>
      )}
      {s.slowed && (
        <Text size="sm" c="var(--warn)">
          Its catalogs take too long: {many(s.slowed.timeouts, 'time')} out since <Time at={s.slowed.since} />.
        </Text>
      )}
      {(s.losses ?? []).map((loss) => (
        <Text size="sm" key={loss} c="var(--warn)">
          {visible(loss)}
        </Text>
      ))}
    </section>
  );
}
