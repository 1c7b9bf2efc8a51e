import { useMemo, useState } from 'react';
import type { Resource } from '../../api/client';
import { useAsk } from '../../data/query';
import { useSearch } from '../../routes/router';
import { DataTable, type Column } from '../../ui/DataTable';
import { Find } from '../../ui/filters';
import { Modal, SegmentedControl } from '../../ui/kit';
import { Coming, Empty, Failure, Place, Time } from '../../ui/parts';
import { count, visible } from '../../ui/words';
import { Picture } from './Picture';

const nameOf = (r: Resource) => `${r.type}[${r.title}]`;

const columns = (open: (r: Resource) => void): Column<Resource>[] => [
  { key: 'type', title: 'Type', width: 'minmax(80px, 1fr)', cell: (r) => r.type },
  {
    key: 'title',
    title: 'Title',
    width: 'minmax(140px, 3fr)',
    cell: (r) => (
      <button type="button" className="as-link" onClick={() => open(r)} aria-label={`Open ${nameOf(r)}`}>
        {visible(r.title)}
      </button>
    ),
  },
  {
    key: 'place',
    title: 'Place',
    width: 'minmax(110px, 2fr)',
    from: 600,
    cell: (r) => <Place file={r.file} line={r.line} />,
  },
];

/** The node's newest catalog: its resources, or what waits for what in it. */
export default function Resources({ name }: { name: string }) {
  const [search, change] = useSearch();
  const drawn = search.view === 'graph' || search.view === 'table';
  return (
    <>
      <SegmentedControl
        aria-label="How it is shown"
        size="xs"
        style={{ alignSelf: 'flex-start' }}
        data={[
          { value: 'list', label: 'List' },
          { value: 'graph', label: 'Graph' },
          { value: 'table', label: 'Order' },
        ]}
        value={drawn ? search.view! : 'list'}
        onChange={(view) => change({ view: view === 'list' ? '' : view, open: '', near: '', box: '' })}
      />
      {drawn ? (
        <div className="page-scroll">
          <Picture name={name} show="catalog" table={search.view === 'table'} />
        </div>
      ) : (
        <List name={name} />
      )}
    </>
  );
}

function List({ name }: { name: string }) {
  const [search, change] = useSearch();
  const catalog = useAsk('node.catalog', { name });
  const [shown, setShown] = useState<Resource>();
  const all = catalog.data?.resources;
  const text = (search.find ?? '').toLowerCase();
  const rows = useMemo(() => (all ?? []).filter((r) => !text || nameOf(r).toLowerCase().includes(text)), [all, text]);
  if (catalog.error) return <Failure error={catalog.error} again={() => void catalog.refetch()} />;
  if (!catalog.data) return <Coming />;
  return (
    <>
      <Find placeholder="File[/etc/motd]" value={search.find} set={(find) => change({ find })}>
        {count(rows.length)} of {count(all?.length ?? 0)}, compiled <Time at={catalog.data.compiled_at} />
      </Find>
      <DataTable
        label="Resources"
        columns={columns(setShown)}
        rows={rows}
        rowKey={nameOf}
        whole
        onOpen={setShown}
        empty={<Empty title="No resource is called that" />}
      />
      <Modal
        opened={shown !== undefined}
        onClose={() => setShown(undefined)}
        size="lg"
        title={shown ? visible(nameOf(shown)) : ''}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {shown && (
          <dl className="pairs">
            {Object.entries((shown.parameters ?? {}) as Record<string, unknown>).map(([key, value]) => (
              <div key={key} style={{ display: 'contents' }}>
                <dt>{key}</dt>
                <dd>
                  <pre className="output">
                    {visible(typeof value === 'string' ? value : JSON.stringify(value, null, 2))}
                  </pre>
                </dd>
              </div>
            ))}
            <dt>place</dt>
            <dd className="mono">{shown.file ? `${shown.file}:${shown.line ?? ''}` : 'not known'}</dd>
            <dt>tags</dt>
            <dd>{(shown.tags ?? []).join(', ')}</dd>
          </dl>
        )}
      </Modal>
    </>
  );
}
