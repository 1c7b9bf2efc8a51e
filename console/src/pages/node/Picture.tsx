import type { ResourceBox, ResourceGraph } from '../../api/client';
import { useAsk } from '../../data/query';
import { useSearch } from '../../routes/router';
import { DataTable, type Column } from '../../ui/DataTable';
import { Graph } from '../../ui/Graph';
import { Button, Checkbox, Group, Stack, Text } from '../../ui/kit';
import { Coming, CommandLine, Empty, Failure, Place, State } from '../../ui/parts';
import { commandLine, count, flags, visible } from '../../ui/words';
import { CodeAt } from '../change/CodeAt';

/** How many resources of a class are in which state, in words. */
function countsOf(box: ResourceBox): string {
  return Object.entries(box.counts ?? {})
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([state, n]) => `${count(n)} ${state || 'in it'}`)
    .join(', ');
}

/** What a box waits for, and what waits for it. */
function around(graph: ResourceGraph, name: string) {
  const lines = graph.lines ?? [];
  return {
    waits: lines.filter((l) => l.to === name).map((l) => l.from),
    holds: lines.filter((l) => l.from === name).map((l) => l.to),
  };
}

interface Props {
  name: string;
  show: 'failed' | 'catalog';
  table?: boolean;
  environment?: string;
  version?: string;
}

/** What waits for what: drawn, or the same as a table. */
export function Picture({ name, show, table, ...code }: Props) {
  const [search, change] = useSearch();
  const asked = useAsk('node.graph', { name, show, open: search.open, near: search.near });
  if (asked.error) {
    return (
      <>
        <Failure error={asked.error} again={() => void asked.refetch()} />
        {search.near && (
          <Button variant="default" size="xs" style={{ alignSelf: 'flex-start' }} onClick={() => change({ near: '' })}>
            Show all
          </Button>
        )}
      </>
    );
  }
  if (!asked.data) return <Coming />;
  const graph = asked.data;
  if ((graph.boxes ?? []).length === 0) {
    return <Empty title={show === 'failed' ? 'Nothing failed, and nothing was skipped' : 'The catalog is empty'} />;
  }
  const opened = (search.open ?? '').split(',').filter(Boolean);
  return (
    <Stack gap="xs" className={show === 'catalog' ? 'page' : undefined}>
      <Notes graph={graph} />
      <Group gap="md">
        {graph.folds && (
          <Button size="compact-xs" variant="default" onClick={() => change({ open: 'all' })}>
            Open every class
          </Button>
        )}
        {opened.length > 0 && (
          <Button size="compact-xs" variant="default" onClick={() => change({ open: '' })}>
            Fold classes
          </Button>
        )}
        {search.near && (
          <Button size="compact-xs" variant="default" onClick={() => change({ near: '' })}>
            Show all, not only what is tied to {visible(search.near)}
          </Button>
        )}
        {!table && (
          <Checkbox
            size="xs"
            label="All at once"
            checked={search.fit === 'yes'}
            onChange={(e) => change({ fit: e.currentTarget.checked ? 'yes' : '' })}
          />
        )}
      </Group>
      {table ? <Twin graph={graph} /> : <Drawn graph={graph} opened={opened} {...code} />}
      <CommandLine
        line={commandLine(
          'node',
          'graph',
          name,
          show === 'catalog' && '--catalog',
          ...flags({ open: search.open, near: search.near }),
        )}
      />
    </Stack>
  );
}

function Notes({ graph }: { graph: ResourceGraph }) {
  const cycle = graph.cycle ?? [];
  return (
    <>
      {cycle.length > 0 && (
        <div>
          <State of="failed">no order</State>{' '}
          <Text span size="sm">
            These wait for one another: {[...cycle, cycle[0]!].map(visible).join(' → ')}
          </Text>
        </div>
      )}
      {((graph.left ?? 0) > 0 || (graph.lines_left ?? 0) > 0) && (
        <Text size="sm">
          {count(graph.left ?? 0)} boxes and {count(graph.lines_left ?? 0)} lines more are not drawn. Choose a resource,
          and have only what is tied to it shown.
        </Text>
      )}
      {graph.other_catalog && (
        <Text size="sm" c="dimmed">
          The node has another catalog by now: what waits for what is taken from that one.
        </Text>
      )}
    </>
  );
}

/** What a box says besides its name. */
function stateText(b: ResourceBox): string {
  const container = /^(Class|Node|Stage)\[/.exec(b.name);
  return b.folded ? countsOf(b) : b.state || (container ? container[1]!.toLowerCase() : 'not in the last run');
}

function boxText(b: ResourceBox) {
  return (
    <>
      <span className="graph-name" title={visible(b.name)}>
        {visible(b.name)}
      </span>
      {b.state && !b.folded ? <State of={b.state} /> : <span className="graph-more">{stateText(b)}</span>}
    </>
  );
}

function Drawn(props: { graph: ResourceGraph; opened: string[]; environment?: string; version?: string }) {
  const { graph, opened } = props;
  const [search, change] = useSearch();
  const boxes = graph.boxes ?? [];
  const chosen = boxes.find((b) => b.name === search.box);
  const told = (b: ResourceBox) => {
    const { waits, holds } = around(graph, b.name);
    return [
      `${visible(b.name)}, ${stateText(b)}`,
      waits.length > 0 && `waits for ${waits.slice(0, 5).map(visible).join(', ')}`,
      holds.length > 0 && `${holds.length === 1 ? '1 box' : `${count(holds.length)} boxes`} behind it`,
    ]
      .filter(Boolean)
      .join('; ');
  };
  return (
    <>
      <Graph
        label={`${graph.show === 'failed' ? 'What failed, and what was skipped for it' : 'The catalog'}: ${count(boxes.length)} boxes. Arrows move along the lines, Enter chooses.`}
        boxes={boxes}
        lines={(graph.lines ?? []).map((l) => ({ ...l, points: l.points as [number, number][] | null }))}
        size={{
          width: graph.width,
          height: graph.height,
          boxWidth: graph.box_width,
          boxHeight: graph.box_height,
        }}
        chosen={chosen?.name}
        small={search.fit === 'yes'}
        onChoose={(b) => change({ box: b.name === search.box ? '' : b.name })}
        told={told}
        text={boxText}
      />
      {chosen && (
        <section className="card" aria-label={`About ${chosen.name}`}>
          <Group justify="space-between" gap="xs">
            <Text fw={600} size="sm">
              {visible(chosen.name)}
            </Text>
            <Group gap="xs">
              {chosen.folded && (
                <Button
                  size="compact-xs"
                  variant="default"
                  onClick={() => change({ open: [...opened, chosen.name].join(','), box: '' })}
                >
                  Open the class
                </Button>
              )}
              {search.near !== chosen.name && !chosen.folded && (
                <Button size="compact-xs" variant="default" onClick={() => change({ near: chosen.name })}>
                  Only what is tied to it
                </Button>
              )}
            </Group>
          </Group>
          <CodeAt
            key={chosen.name}
            environment={props.environment}
            version={props.version}
            file={chosen.file}
            line={chosen.line}
          />
          <Ties graph={graph} name={chosen.name} />
        </section>
      )}
    </>
  );
}

function Ties({ graph, name }: { graph: ResourceGraph; name: string }) {
  const [, change] = useSearch();
  const { waits, holds } = around(graph, name);
  return (
    <dl className="pairs">
      {(
        [
          ['waits for', waits],
          ['is waited for by', holds],
        ] as const
      )
        .filter(([, names]) => names.length > 0)
        .map(([word, names]) => (
          <div key={word} style={{ display: 'contents' }}>
            <dt>{word}</dt>
            <dd>
              {names.slice(0, 30).map((n, i) => (
                <span key={n}>
                  {i > 0 && ', '}
                  <button type="button" className="as-link" onClick={() => change({ box: n })}>
                    {visible(n)}
                  </button>
                </span>
              ))}
              {names.length > 30 && ` and ${count(names.length - 30)} more`}
            </dd>
          </div>
        ))}
    </dl>
  );
}

const columns = (graph: ResourceGraph): Column<ResourceBox>[] => [
  {
    key: 'name',
    title: 'Resource',
    width: 'minmax(150px, 2fr)',
    cell: (b) => <span title={visible(b.name)}>{visible(b.name)}</span>,
  },
  {
    key: 'state',
    title: 'State',
    width: '120px',
    cell: (b) => (b.folded ? countsOf(b) : b.state ? <State of={b.state} /> : '–'),
  },
  {
    key: 'waits',
    title: 'Waits for',
    width: 'minmax(150px, 3fr)',
    from: 600,
    cell: (b) => {
      const text = around(graph, b.name).waits.map(visible).join(', ');
      return <span title={text}>{text || '–'}</span>;
    },
  },
  {
    key: 'place',
    title: 'Place',
    width: 'minmax(110px, 1fr)',
    from: 900,
    cell: (b) => <Place file={b.file} line={b.line} />,
  },
];

/** The same as the drawing, row by row. */
function Twin({ graph }: { graph: ResourceGraph }) {
  return (
    <div className="twin">
      <DataTable
        label="What waits for what"
        columns={columns(graph)}
        rows={graph.boxes ?? []}
        rowKey={(b) => b.name}
        whole
      />
    </div>
  );
}
