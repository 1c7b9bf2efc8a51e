import { useMemo } from 'react';
import { useAsk } from '../data/query';
import { Link, useSearch } from '../routes/router';
import { DataTable, type Column } from '../ui/DataTable';
import { Find } from '../ui/filters';
import { Text } from '../ui/kit';
import { Coming, CommandLine, Empty, Failure, Page } from '../ui/parts';
import { commandLine, count, many, visible } from '../ui/words';
import { Crumbs } from './Crumbs';
import { condition } from './node/Facts';

type Step = string | number;

/** A path as people write it: os.family, processors.models[0]. */
export function pathText(steps: Step[]): string {
  return steps
    .map((s, i) =>
      typeof s === 'number' ? `[${s}]` : `${i > 0 ? '.' : ''}${/^[\w:-]+$/.test(s) ? s : JSON.stringify(s)}`,
    )
    .join('');
}

/** The question for the values that nodes have at a path, what most have first. */
export function valuesQuery(steps: Step[]): string {
  return `fact_contents[value, count()]{path = ${JSON.stringify(steps)} group by value order by count() desc, value}`;
}

interface Path {
  path: Step[];
  type: string;
  text: string;
}

const paths: Column<Path>[] = [
  {
    key: 'path',
    title: 'Fact',
    width: 'minmax(180px, 3fr)',
    cell: (p) => (
      <Link to="/facts" search={{ path: JSON.stringify(p.path) }} className="plain mono">
        {visible(p.text)}
      </Link>
    ),
  },
  { key: 'type', title: 'Type', width: '110px', cell: (p) => p.type },
];

function stepsOf(text: string | undefined): Step[] | undefined {
  try {
    const steps = JSON.parse(text ?? '') as unknown;
    if (Array.isArray(steps) && steps.length > 0) return steps.map((s) => (typeof s === 'number' ? s : String(s)));
  } catch {
    // It is no path: the list of paths is shown.
  }
  return undefined;
}

/** Which facts there are, and which values nodes have of one. */
export function Facts() {
  const [search] = useSearch();
  const steps = stepsOf(search.path);
  if (steps) return <Values steps={steps} />;
  return <Paths />;
}

function Paths() {
  const [search, change] = useSearch();
  const asked = useAsk('query.run', { query: 'fact_paths[path, type]{order by path}' });
  const all = useMemo(
    () => ((asked.data?.rows ?? []) as { path: Step[]; type: string }[]).map((p) => ({ ...p, text: pathText(p.path) })),
    [asked.data],
  );
  const find = (search.find ?? '').toLowerCase();
  const rows = find ? all.filter((p) => p.text.toLowerCase().includes(find)) : all;
  return (
    <Page title="Facts" name="Facts">
      {asked.error ? (
        <Failure error={asked.error} again={() => void asked.refetch()} />
      ) : !asked.data ? (
        <Coming />
      ) : (
        <>
          <Find placeholder="os.family" value={search.find} set={(next) => change({ find: next })}>
            {count(rows.length)} of {many(all.length, 'path')}
          </Find>
          <DataTable
            label="Facts"
            columns={paths}
            rows={rows}
            rowKey={(p) => p.text}
            whole
            onOpen={(p) => change({ path: JSON.stringify(p.path) }, false)}
            empty={
              find ? (
                <Empty title="No fact is called that" />
              ) : (
                <Empty title="No facts yet">
                  <Text size="sm">Nodes send them when they ask for a catalog.</Text>
                </Empty>
              )
            }
          />
        </>
      )}
      <CommandLine line={commandLine('fact', 'list', '--paths')} />
    </Page>
  );
}

interface Value {
  value: unknown;
  count: number;
}

const valueColumns = (steps: Step[], total: number, most: number): Column<Value>[] => [
  {
    key: 'value',
    title: 'Value',
    width: 'minmax(130px, 2fr)',
    cell: (r) => {
      const shown = visible(typeof r.value === 'string' ? r.value : JSON.stringify(r.value));
      const where = condition(steps.map(String), r.value);
      return where ? (
        <Link to="/nodes" search={{ where }} className="mono" label={`${shown}: nodes with this value`}>
          {shown}
        </Link>
      ) : (
        <span className="mono" title={shown}>
          {shown}
        </span>
      );
    },
  },
  { key: 'nodes', title: 'Nodes', width: '70px', end: true, cell: (r) => count(r.count) },
  {
    key: 'share',
    title: 'Share',
    width: '70px',
    end: true,
    cell: (r) => `${((100 * r.count) / Math.max(1, total)).toFixed(r.count * 100 < total ? 2 : 0)} %`,
  },
  {
    key: 'bar',
    title: '',
    width: 'minmax(120px, 3fr)',
    from: 600,
    cell: (r) => (
      <span className="share" aria-hidden>
        <span style={{ width: `${(100 * r.count) / Math.max(1, most)}%` }} />
      </span>
    ),
  },
];

function Values({ steps }: { steps: Step[] }) {
  const asked = useAsk('query.run', { query: valuesQuery(steps) });
  const rows = (asked.data?.rows ?? []) as Value[];
  const total = rows.reduce((n, r) => n + r.count, 0);
  const text = pathText(steps);
  return (
    <Page
      title={<span className="mono">{visible(text)}</span>}
      name={text}
      above={
        <Crumbs to="/facts" of="Facts">
          {visible(text)}
        </Crumbs>
      }
    >
      {asked.error ? (
        <Failure error={asked.error} again={() => void asked.refetch()} />
      ) : !asked.data ? (
        <Coming />
      ) : (
        <>
          <Text size="sm">
            {many(rows.length, 'value')} on {many(total, 'node')}
          </Text>
          <DataTable
            label={`Values of ${text}`}
            columns={valueColumns(steps, total, rows[0]?.count ?? 1)}
            rows={rows}
            rowKey={(r) => JSON.stringify(r.value)}
            whole
            empty={
              <Empty title="No node has it">
                <Link to="/facts">All facts</Link>
              </Empty>
            }
          />
        </>
      )}
      <CommandLine line={commandLine('fact', 'values', text)} />
    </Page>
  );
}
