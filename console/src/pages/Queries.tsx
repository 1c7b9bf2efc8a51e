import { lazy, Suspense, useMemo, useState } from 'react';
import { call, Refusal, type QueryAnswer } from '../api/client';
import { useAsk } from '../data/query';
import { Link, nodeAddress, useSearch } from '../routes/router';
import { DataTable, type Column } from '../ui/DataTable';
import { Button, Group, Modal, SegmentedControl, Text, Title } from '../ui/kit';
import { Coming, CommandLine, Empty, Failure, Page, saveAs, Whisper } from '../ui/parts';
import { commandLine, many, visible } from '../ui/words';
import { csvOf, roomOf, stepsAfter, wantedAt } from './queries/complete';
import { SaveDialog } from './queries/SaveDialog';
import { RunButton } from './RunDialog';

const QueryEditor = lazy(() => import('../editor/Query'));
const Saved = lazy(() => import('./queries/Saved'));

/** How many rows a page shows; an export has all. */
const most = 1000;

type Row = Record<string, unknown>;

const views = [
  { value: 'table', label: 'Table' },
  { value: 'json', label: 'JSON' },
  { value: 'saved', label: 'Saved queries' },
];

/** Questions to the inventory: an editor, what comes, and the questions that were saved. */
export function Queries() {
  const [search, change] = useSearch();
  const asked = search.q ?? '';
  const [text, setText] = useState(asked);
  const [applied, setApplied] = useState(asked);
  const [saves, setSaves] = useState(false);
  if (applied !== asked) {
    // Back, forward and a saved query change it, too.
    setApplied(asked);
    setText(asked);
  }
  const answer = useAsk('query.run', { query: asked, most }, { enabled: asked !== '' });
  const complete = useComplete(text);
  const view = search.view === 'json' || search.view === 'saved' ? search.view : asked ? 'table' : 'saved';
  const place = answer.error?.problem.place;
  const wrong = useMemo(
    () => (place && text === asked ? { ...place, message: answer.error?.message ?? '' } : undefined),
    [place, text, asked, answer.error],
  );
  const ask = (now: string) => {
    if (!now.trim()) return;
    if (now === asked && view !== 'saved') void answer.refetch();
    else change({ q: now, view: view === 'json' ? view : '' }, false);
  };
  const columns = answer.data?.columns ?? [];
  const nodes = columns.includes('certname');
  return (
    <Page
      title="Queries"
      name="Queries"
      actions={
        nodes && (
          <>
            <RunButton
              targets={{ query: asked }}
              words={['--query', asked]}
              disabled={answer.data?.rows?.length === 0}
            />
            <Text size="sm" component="div">
              <Link to="/tasks" search={{ by: 'query', query: asked }}>
                Run a task on them
              </Link>
            </Text>
            <Text size="sm" component="div">
              <Link to="/actions" search={{ by: 'query', query: asked }}>
                Call an action
              </Link>
            </Text>
          </>
        )
      }
    >
      <form
        onSubmit={(e) => {
          e.preventDefault();
          ask(text);
        }}
      >
        <Suspense fallback={<Coming lines={2} />}>
          <QueryEditor label="Query" value={text} set={setText} ask={ask} complete={complete} wrong={wrong} />
        </Suspense>
        <Group gap="xs" mt="xs">
          <Button type="submit" size="xs" disabled={!text.trim()} loading={answer.isFetching}>
            Ask
          </Button>
          <Button size="xs" variant="default" disabled={!text.trim()} onClick={() => setSaves(true)}>
            Save…
          </Button>
          <Text size="sm" c="dimmed" visibleFrom="sm">
            Ctrl+Enter asks, Ctrl+Space completes
          </Text>
        </Group>
      </form>
      <Group gap="xs" justify="space-between">
        {asked ? (
          <SegmentedControl
            aria-label="What is shown"
            size="xs"
            data={views}
            value={view}
            onChange={(v) => change({ view: v === 'table' ? '' : v }, false)}
          />
        ) : (
          <Title order={2}>Saved queries</Title>
        )}
        {answer.data && view !== 'saved' && <Export query={asked} answer={answer.data} />}
      </Group>
      {view === 'saved' ? (
        <Suspense fallback={<Coming />}>
          <Saved />
        </Suspense>
      ) : (
        <>
          {answer.error && (
            <Failure
              error={answer.error}
              again={answer.error.problem.kind === 'invalid' ? undefined : () => void answer.refetch()}
            />
          )}
          {answer.isPending && <Coming />}
          {answer.data && <Answer answer={answer.data} json={view === 'json'} />}
        </>
      )}
      {saves && <SaveDialog text={text} name={search.saved ?? ''} close={() => setSaves(false)} />}
      <CommandLine line={asked && view !== 'saved' ? commandLine('query', asked) : commandLine('query', 'list')} />
    </Page>
  );
}

/** What may follow: words of the language, which the server knows, and values that nodes have. */
function useComplete(text: string) {
  const paths = useAsk(
    'query.run',
    { query: 'fact_paths[path, type]{order by path}' },
    { enabled: text.includes('facts.') },
  );
  return async (before: string, stop: AbortSignal) => {
    const wanted = wantedAt(before);
    try {
      if (wanted?.kind === 'paths') {
        const known = ((paths.data?.rows ?? []) as { path: (string | number)[] }[]).map((p) => p.path);
        return { begun: wanted.begun, words: stepsAfter(wanted.begun, known).map((t) => ({ text: t, kind: 'fact' })) };
      }
      if (wanted) {
        const found = await call('query.run', { query: wanted.query }, stop);
        const rows = (found.rows ?? []) as Row[];
        const typed = wanted.begun.slice(1).toLowerCase();
        const words = rows
          .filter((r) => r[wanted.column] !== null && String(r[wanted.column]).toLowerCase().startsWith(typed))
          .map((r) => ({
            text: JSON.stringify(r[wanted.column]),
            kind: 'value',
            detail: typeof r.count === 'number' ? many(r.count, 'node') : undefined,
          }));
        return { begun: wanted.begun, words };
      }
      const offered = await call('query.words', { text: before }, stop);
      return { begun: offered.begun, words: offered.words ?? [] };
    } catch (cause) {
      // Nothing is offered; what is wrong is said when the query is asked.
      if (cause instanceof Refusal || stop.aborted) return undefined;
      throw cause;
    }
  };
}

function cellOf(name: string, value: unknown) {
  const text = visible(
    value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value),
  );
  if (name === 'certname' && text) return <Link to={nodeAddress(text)}>{text}</Link>;
  return (
    <span className="mono" title={text.slice(0, 2000)}>
      {text}
    </span>
  );
}

const columnsOf = (names: string[]): Column<{ at: number; row: Row }>[] =>
  names.map((name, i) => ({
    key: name,
    title: name,
    width: 'minmax(130px, 1fr)',
    from: roomOf(i),
    cell: ({ row }) => cellOf(name, row[name]),
  }));

function Answer({ answer, json }: { answer: QueryAnswer; json: boolean }) {
  const [shown, setShown] = useState<Row>();
  const names = useMemo(() => answer.columns ?? [], [answer.columns]);
  const rows = useMemo(() => ((answer.rows ?? []) as Row[]).map((row, at) => ({ at, row })), [answer.rows]);
  const told = answer.more
    ? `the first ${many(rows.length, 'row')}; there are more, and an export has all`
    : many(rows.length, 'row');
  return (
    <>
      <Text size="sm" component="output">
        {told}
      </Text>
      {json ? (
        // What scrolls must be reachable by keyboard.
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <pre className="output page-scroll" tabIndex={0} aria-label="The answer as JSON">
          {visible(JSON.stringify(answer.rows, null, 1))}
        </pre>
      ) : (
        <DataTable
          label="Answer"
          columns={columnsOf(names)}
          rows={rows}
          rowKey={(r) => String(r.at)}
          whole
          total={answer.more ? undefined : rows.length}
          onOpen={(r) => setShown(r.row)}
          empty={
            <Empty title="No rows">
              <Text size="sm">The question is right, and nothing is like that.</Text>
            </Empty>
          }
        />
      )}
      <Modal
        opened={shown !== undefined}
        onClose={() => setShown(undefined)}
        size="lg"
        title="One row"
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <dl className="pairs">
          {names.map((name) => (
            <div key={name} style={{ display: 'contents' }}>
              <dt className="mono">{name}</dt>
              <dd>
                <pre className="output">
                  {visible(
                    typeof shown?.[name] === 'string'
                      ? (shown[name] as string)
                      : (JSON.stringify(shown?.[name], null, 1) ?? ''),
                  )}
                </pre>
              </dd>
            </div>
          ))}
        </dl>
      </Modal>
      <Whisper text={told} />
    </>
  );
}

/** Saves all rows of a question, also those that the page does not show. */
function Export({ query, answer }: { query: string; answer: QueryAnswer }) {
  const [busy, setBusy] = useState('');
  const [error, setError] = useState<Refusal>();
  const save = async (kind: 'csv' | 'json') => {
    setBusy(kind);
    setError(undefined);
    try {
      const all = answer.more ? await call('query.run', { query }) : answer;
      const rows = (all.rows ?? []) as Row[];
      if (kind === 'csv') saveAs('query.csv', csvOf(all.columns ?? [], rows), 'text/csv');
      else saveAs('query.json', `${JSON.stringify(rows, null, 1)}\n`, 'application/json');
    } catch (cause) {
      if (!(cause instanceof Refusal)) throw cause;
      setError(cause);
    }
    setBusy('');
  };
  return (
    <Group gap="xs">
      {error && (
        <Text size="sm" className="many-bad" role="alert">
          {error.message}
        </Text>
      )}
      <Button size="xs" variant="default" loading={busy === 'csv'} onClick={() => void save('csv')}>
        Export CSV
      </Button>
      <Button size="xs" variant="default" loading={busy === 'json'} onClick={() => void save('json')}>
        Export JSON
      </Button>
    </Group>
  );
}
