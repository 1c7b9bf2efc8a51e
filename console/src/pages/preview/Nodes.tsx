import type { PreviewNode, PreviewReport } from '../../api/client';
import { useAsk, useList } from '../../data/query';
import { useSearch } from '../../routes/router';
import type { Column } from '../../ui/DataTable';
import { Choice } from '../../ui/filters';
import { Button, Group, Modal, Text } from '../../ui/kit';
import { Coming, Empty, Failure, Place, State } from '../../ui/parts';
import { many, visible } from '../../ui/words';
import { Differing, signOf } from '../change/Difference';
import { ListOf } from '../ListOf';

const columns = (open: (name: string) => void): Column<PreviewNode>[] => [
  {
    key: 'name',
    title: 'Node',
    width: 'minmax(150px, 2fr)',
    cell: (n) => (
      <button type="button" className="as-link" aria-label={`What changes for ${n.name}`} onClick={() => open(n.name)}>
        {n.name}
      </button>
    ),
  },
  { key: 'state', title: 'State', width: '110px', cell: (n) => <State of={n.state} /> },
  {
    key: 'message',
    title: 'Why',
    width: 'minmax(140px, 3fr)',
    from: 600,
    cell: (n) => {
      const text = visible(
        n.message ?? (n.quiet ? 'noise only' : n.engine_only ? 'noise of the engine only' : (n.volatile ?? '')),
      );
      return <span title={text}>{text}</span>;
    },
  },
  {
    key: 'place',
    title: 'Place',
    width: 'minmax(110px, 1fr)',
    from: 900,
    cell: (n) => <Place file={n.file} line={n.line} />,
  },
  {
    key: 'reused',
    title: 'Catalog',
    width: '100px',
    from: 1200,
    cell: (n) => (n.catalog ? (n.reused ? 'the stored one' : 'compiled') : '–'),
  },
];

/** The nodes of a preview, how each stands, and all that changes for one. */
export default function PreviewNodes({ p }: { p: PreviewReport }) {
  const [search, change] = useSearch();
  const list = useList('preview.nodes', { preview: p.id, state: search.state, change: search.change });
  const open = (node: string) => change({ node }, false);
  return (
    <>
      <Group gap="xs" align="flex-end">
        <Choice
          label="State"
          any="Any state"
          width={150}
          data={['failed', 'unable', 'changed', 'first', 'reordered', 'same', 'waiting']}
          value={search.state}
          set={(state) => change({ state })}
        />
        {search.change && (
          <Button variant="default" onClick={() => change({ change: '' })}>
            Of one change: show all
          </Button>
        )}
      </Group>
      <ListOf
        label="Nodes of the preview"
        columns={columns(open)}
        list={list}
        rowKey={(n) => n.name}
        total={search.change ? undefined : search.state ? (p.counts?.[search.state] ?? 0) : p.nodes}
        onOpen={(n) => open(n.name)}
        empty={
          <Empty title="No node is like that">
            <button type="button" className="as-link" onClick={() => change({ state: '', change: '' })}>
              Show all
            </button>
          </Empty>
        }
      />
      <Modal
        opened={Boolean(search.node)}
        onClose={() => change({ node: '' }, false)}
        size="xl"
        title={`What changes for ${search.node ?? ''}`}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {search.node && <OneNode preview={p.id} name={search.node} />}
      </Modal>
    </>
  );
}

function OneNode({ preview, name }: { preview: string; name: string }) {
  const asked = useAsk('preview.node', { preview, name });
  if (asked.error) return <Failure error={asked.error} again={() => void asked.refetch()} />;
  if (!asked.data) return <Coming lines={3} />;
  const d = asked.data;
  const order = d.order.resources + d.order.edge_count + d.order.moved;
  return (
    <div>
      <Text size="sm">
        {d.added} added, {d.removed} removed, {d.changed} changed
        {order > 0 && `; ${order} in order only`}
      </Text>
      {(d.classes_added ?? []).length > 0 && <Text size="sm">+ classes {d.classes_added!.join(', ')}</Text>}
      {(d.classes_removed ?? []).length > 0 && <Text size="sm">− classes {d.classes_removed!.join(', ')}</Text>}
      <ul className="changes" aria-label="Resources that change">
        {(d.resources ?? []).map((r) => (
          <li key={`${r.type}[${r.title}]`}>
            <Text fw={600} size="sm">
              <span className="mono">{signOf(r.change)}</span> {visible(`${r.type}[${r.title}]`)}
            </Text>
            <Differing resource={r} />
          </li>
        ))}
      </ul>
      {(d.not_listed ?? 0) > 0 && <Text size="sm">and {many(d.not_listed!, 'resource')} more</Text>}
    </div>
  );
}
