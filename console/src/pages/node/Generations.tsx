import type { Delivery, Generation } from '../../api/client';
import { useAsk } from '../../data/query';
import { Link } from '../../routes/router';
import { DataTable, type Column } from '../../ui/DataTable';
import { Text } from '../../ui/kit';
import { Coming, Empty, Failure, State, Time } from '../../ui/parts';
import { visible } from '../../ui/words';

/** The catalogs that were released to a node, what it may have now, and what it applied. */
export default function Generations({ name }: { name: string }) {
  const asked = useAsk('node.delivery', { name });
  if (asked.error) return <Failure error={asked.error} again={() => void asked.refetch()} />;
  if (!asked.data) return <Coming />;
  const d = asked.data;
  return (
    <>
      <Stands d={d} />
      <DataTable
        label="Generations"
        columns={columns(d.applied?.generation)}
        rows={d.generations ?? []}
        rowKey={(g) => String(g.number)}
        whole
        empty={
          <Empty title="Nothing was released to it">
            <Text size="sm">
              {d.mode === 'live'
                ? 'It is in live mode: it gets the newest catalog by itself. Generations are what releases hand to nodes in released mode.'
                : 'It is in released mode, and gets its first generation from a release.'}
            </Text>
          </Empty>
        }
      />
    </>
  );
}

const from = { node: 'set for it', group: 'by the group', setting: 'by the server’s setting' } as Record<
  string,
  string
>;

/** What the node may have, and how what it applied stands to that. */
function Stands({ d }: { d: Delivery }) {
  return (
    <Text size="sm" component="div">
      <State of={d.state} /> In {d.mode} mode, {from[d.mode_from] ?? d.mode_from}
      {d.mode_group && ` ${visible(d.mode_group)}`}.{' '}
      {d.pointer ? (
        <>
          It may have the catalog <span className="mono">{d.pointer.catalog.slice(0, 12)}</span>
          {d.pointer.generation ? ` of generation ${d.pointer.generation}` : ''}, of the version{' '}
          <span className="mono">{d.pointer.version.slice(0, 12)}</span> of {d.pointer.environment}.
        </>
      ) : (
        visible(d.why ?? '')
      )}
      {d.pin && (
        <>
          {' '}
          <State of="pinned">pinned</State> by {visible(d.pin.by)}, <Time at={d.pin.at} />: {visible(d.pin.why)}
        </>
      )}
    </Text>
  );
}

const columns = (applied?: number): Column<Generation>[] => [
  {
    key: 'number',
    title: 'Generation',
    width: 'minmax(110px, 1fr)',
    cell: (g) => (
      <>
        {g.number}
        {g.number === applied && (
          <>
            {' '}
            <State of="applied" />
          </>
        )}
      </>
    ),
  },
  {
    key: 'version',
    title: 'Version',
    width: '130px',
    cell: (g) => <span className="mono">{g.version.slice(0, 12)}</span>,
  },
  {
    key: 'release',
    title: 'Release',
    width: '90px',
    cell: (g) => (g.release ? <Link to={`/releases/${g.release}`}>{g.release}</Link> : '–'),
  },
  { key: 'at', title: 'Released', width: '110px', from: 600, cell: (g) => <Time at={g.at} /> },
  { key: 'by', title: 'By', width: '110px', from: 900, cell: (g) => visible(g.by) },
  {
    key: 'catalog',
    title: 'Catalog',
    width: '130px',
    from: 900,
    cell: (g) => <span className="mono">{g.catalog.slice(0, 12)}</span>,
  },
  {
    key: 'why',
    title: 'Why',
    width: 'minmax(120px, 2fr)',
    from: 900,
    cell: (g) => <span title={visible(g.why ?? '')}>{visible(g.why ?? '')}</span>,
  },
];
