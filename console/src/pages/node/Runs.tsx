import type { Report, ReportLog, ReportResource } from '../../api/client';
import { useAsk, useList } from '../../data/query';
import { useSearch } from '../../routes/router';
import { DataTable, type Column } from '../../ui/DataTable';
import { Choice } from '../../ui/filters';
import { Button, Group, Stack, Text, Title } from '../../ui/kit';
import { Coming, Empty, Failure, Place, State, Time } from '../../ui/parts';
import { count, duration, visible } from '../../ui/words';
import { ListOf } from '../ListOf';

/** The node's runs, newest first; one of them whole. */
export default function Runs({ name }: { name: string }) {
  const [search, change] = useSearch();
  if (search.report) return <OneRun id={search.report} back={() => change({ report: '' }, false)} />;
  return <RunList name={name} />;
}

const stateOf = (r: Report) =>
  r.status === 'failed'
    ? 'failed'
    : r.noop && r.noop_pending
      ? 'pending'
      : r.corrective_change
        ? 'corrective'
        : r.status;

const columns = (open: (r: Report) => void): Column<Report>[] => [
  {
    key: 'at',
    title: 'Reported',
    width: 'minmax(100px, 1fr)',
    cell: (r) => (
      <button type="button" className="as-link" onClick={() => open(r)}>
        <Time at={r.received_at} />
      </button>
    ),
  },
  { key: 'state', title: 'State', width: '130px', cell: (r) => <State of={stateOf(r)} /> },
  { key: 'changed', title: 'Changed', width: '80px', end: true, from: 600, cell: (r) => count(r.counts.changed) },
  {
    key: 'failed',
    title: 'Failed',
    width: '70px',
    end: true,
    from: 600,
    cell: (r) => <span className={r.counts.failed > 0 ? 'many-bad' : undefined}>{count(r.counts.failed)}</span>,
  },
  { key: 'skipped', title: 'Skipped', width: '80px', end: true, from: 900, cell: (r) => count(r.counts.skipped) },
  { key: 'took', title: 'Took', width: '80px', end: true, cell: (r) => duration(r.seconds) },
  {
    key: 'version',
    title: 'Version',
    width: 'minmax(100px, 1fr)',
    from: 900,
    cell: (r) => <span className="mono">{r.version.slice(0, 24)}</span>,
  },
];

function RunList({ name }: { name: string }) {
  const [, change] = useSearch();
  const list = useList('report.list', { name });
  const open = (r: Report) => change({ report: r.id }, false);
  return (
    <ListOf
      label="Runs"
      list={list}
      columns={columns(open)}
      rowKey={(r) => r.id}
      onOpen={open}
      empty={<Empty title="Puppet has not reported from this node" />}
    />
  );
}

const resourceColumns: Column<ReportResource>[] = [
  { key: 'status', title: 'State', width: '120px', cell: (r) => <State of={r.status} /> },
  {
    key: 'resource',
    title: 'Resource',
    width: 'minmax(160px, 2fr)',
    cell: (r) => <span title={`${r.type}[${r.title}]`}>{visible(`${r.type}[${r.title}]`)}</span>,
  },
  {
    key: 'message',
    title: 'What happened',
    width: 'minmax(140px, 2fr)',
    from: 600,
    cell: (r) => {
      const text = visible((r.events ?? []).map((e) => e.message ?? e.property ?? '').join('; '));
      return <span title={text}>{text}</span>;
    },
  },
  {
    key: 'place',
    title: 'Place',
    width: 'minmax(100px, 1fr)',
    from: 900,
    cell: (r) => <Place file={r.file} line={r.line} />,
  },
];

const worst = ['failed', 'skipped', 'changed', 'noop', 'unchanged'];

function OneRun({ id, back }: { id: string; back: () => void }) {
  const [search, change] = useSearch();
  const asked = useAsk('report.show', { id });
  const all = (
    <Button variant="default" size="xs" onClick={back}>
      All runs
    </Button>
  );
  if (asked.error) {
    return (
      <>
        <Group>{all}</Group>
        <Failure error={asked.error} again={() => void asked.refetch()} />
      </>
    );
  }
  if (!asked.data) return <Coming />;
  const report = asked.data;
  const wanted = search.status;
  const rows = (report.resources ?? [])
    .filter((r) => (wanted ? r.status === wanted : r.status !== 'unchanged' || report.counts.resources < 200))
    .toSorted((a, b) => worst.indexOf(a.status) - worst.indexOf(b.status));
  return (
    <>
      <Group justify="space-between" align="flex-end">
        <Group gap="sm">
          {all}
          <State of={stateOf(report)} />
          <Text size="sm">
            <Time at={report.received_at} />, took {duration(report.seconds)}, Puppet {report.puppet_version}
          </Text>
        </Group>
        <Choice
          label="Resources"
          any="All that happened"
          data={worst}
          value={wanted}
          set={(status) => change({ status })}
        />
      </Group>
      {report.kept_in_short && (
        <Text size="sm">This report is kept in short: its log and resources are past report_detail_retention.</Text>
      )}
      <DataTable
        label="Resources of the run"
        columns={resourceColumns}
        rows={rows}
        rowKey={(r) => `${r.type}[${r.title}]`}
        whole
        empty={<Empty title="No resource is in this state" />}
      />
      <Log lines={report.logs ?? []} />
    </>
  );
}

function Log({ lines }: { lines: ReportLog[] }) {
  if (lines.length === 0) return null;
  return (
    <Stack gap={4} mah="30%" className="page-scroll card">
      <Title order={2}>Log</Title>
      {lines.slice(0, 500).map((l, i) => (
        <pre className="output" key={i}>
          <span style={{ color: l.level === 'err' ? 'var(--bad)' : l.level === 'warning' ? 'var(--warn)' : undefined }}>
            {l.level.padEnd(8)}
          </span>
          {visible(l.message.slice(0, 20_000))}
        </pre>
      ))}
    </Stack>
  );
}
