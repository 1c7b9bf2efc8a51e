import { useMemo, useState } from 'react';
import type { Action } from '../../api/client';
import { Link, nodeAddress } from '../../routes/router';
import { Button, Group, SegmentedControl, Stack, Text } from '../../ui/kit';
import { Bar, Failure, State, Whisper } from '../../ui/parts';
import { count, many, visible } from '../../ui/words';
import type { Refusal } from '../../api/client';
import { counted, sorted, summed, textOf, type Same } from './fold';

/** The state of an answer. That a node gave up is no warning here. */
export function AnswerState({ of }: { of: string }) {
  return <State of={of === 'aborted' ? 'failed' : of}>{of}</State>;
}

/** A call as it stands: who was asked, and what has been answered. */
export interface Standing {
  action?: Action;
  nodes: number; // that are meant; 0: it is not known yet
  groups: ReadonlyMap<string, Same>;
  over: boolean;
  stopped: boolean; // by who asked
  took: number; // milliseconds, when it is over
  error?: Refusal;
}

type Shown = 'all' | 'ok' | 'failed';

/** Which answers an action wants people to see. */
const usual = (action?: Action): Shown =>
  action?.display === 'ok' || action?.display === 'failed' ? action.display : 'all';

const most = 200; // groups that are drawn

/** The answers of nodes: the same ones together, what they sum up to, and how many are still to come. */
export function Answers({ call, stop }: { call: Standing; stop: () => void }) {
  const [chosen, setChosen] = useState<Shown>();
  const shown = chosen ?? usual(call.action);
  const groups = useMemo(() => sorted(call.groups.values()), [call.groups]);
  const counts = counted(groups);
  const came = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const seen = groups.filter((g) => shown === 'all' || (g.state === 'ok') === (shown === 'ok'));
  const sums = (call.action?.aggregates ?? [])
    .map((sum) => ({ sum, lines: summed(sum, groups) }))
    .filter(({ lines }) => lines.length > 0);
  const titleOf = (name: string) => call.action?.outputs?.find((f) => f.name === name)?.title ?? name;
  const text = `${count(came)} of ${many(call.nodes, 'node')} answered`;
  return (
    <section aria-label="Answers">
      <Stack gap="sm">
        <div className="card">
          <Bar
            parts={Object.entries(counts).map(([state, n]) => ({ state: state === 'aborted' ? 'failed' : state, n }))}
            label={text}
          />
          <Group gap="md" mt="sm" justify="space-between">
            <Group gap="md" fz="sm">
              <Text size="sm" component="output" fw={600}>
                {call.nodes > 0 ? text : 'The nodes are looked for'}
                {call.over &&
                  !call.error &&
                  ` in ${call.took < 10_000 ? `${Math.round(call.took)} ms` : `${Math.round(call.took / 1000)} s`}`}
                {call.stopped && ', stopped'}
              </Text>
              {Object.entries(counts).map(([state, n]) => (
                <span key={state}>
                  {count(n)} <AnswerState of={state} />
                </span>
              ))}
            </Group>
            {!call.over && (
              <Button size="compact-sm" variant="default" onClick={stop}>
                Stop listening
              </Button>
            )}
          </Group>
        </div>
        {call.error && <Failure error={call.error} />}
        {sums.map(({ sum, lines }) => (
          <section
            className="card"
            key={`${sum.function} ${sum.field}`}
            aria-label={`Summary of ${titleOf(sum.field)}`}
          >
            <Text size="sm" fw={600}>
              Summary of {titleOf(sum.field)}
            </Text>
            <pre className="output">{visible(lines.slice(0, 200).join('\n'))}</pre>
          </section>
        ))}
        {groups.length > 0 && (
          <SegmentedControl
            aria-label="Which answers are shown"
            size="xs"
            style={{ alignSelf: 'flex-start' }}
            data={[
              { value: 'all', label: 'All' },
              { value: 'ok', label: 'Those that are ok' },
              { value: 'failed', label: 'The others' },
            ]}
            value={shown}
            onChange={(v) => setChosen(v as Shown)}
          />
        )}
        {groups.length > 0 && seen.length === 0 && (
          <Text size="sm">{shown === 'failed' ? 'All that have answered are ok.' : 'No answer is like that.'}</Text>
        )}
        {seen.slice(0, most).map((g) => (
          <OneAnswer key={`${g.state} ${g.nodes[0]}`} g={g} action={call.action} />
        ))}
        {seen.length > most && <Text size="sm">and {many(seen.length - most, 'other answer')}</Text>}
        <Whisper text={text} />
      </Stack>
    </section>
  );
}

/** The same answer of some nodes. */
function OneAnswer({ g, action }: { g: Same; action?: Action }) {
  return (
    <section className="card" aria-label={`Answer of ${g.nodes[0]}`}>
      <Group gap="xs" align="flex-start">
        {g.state !== 'ok' && <AnswerState of={g.state} />}
        <details className="nodes">
          <summary>
            {g.nodes.length > 1 && `the same on ${many(g.nodes.length, 'node')}: `}
            {g.nodes.slice(0, 4).join(', ')}
            {g.nodes.length > 4 && ' …'}
          </summary>
          <ul className="values">
            {g.nodes.slice(0, 500).map((node) => (
              <li key={node}>
                <Link to={nodeAddress(node)}>{node}</Link>
              </li>
            ))}
            {g.nodes.length > 500 && <li>and {many(g.nodes.length - 500, 'other')}</li>}
          </ul>
        </details>
      </Group>
      {g.message && <Text size="sm">{visible(g.message)}</Text>}
      <Data data={g.data} action={action} />
    </section>
  );
}

function Data({ data, action }: { data: unknown; action?: Action }) {
  if (typeof data !== 'object' || data === null) {
    return data === undefined ? null : <pre className="output">{visible(textOf(data))}</pre>;
  }
  const members = data as Record<string, unknown>;
  const fields = action?.outputs ?? [];
  const known = new Set(fields.map((f) => f.name));
  const rows = [
    ...fields.map((f) => ({ name: f.name, title: f.title || f.name })),
    ...Object.keys(members)
      .filter((name) => !known.has(name))
      .toSorted()
      .map((name) => ({ name, title: name })),
  ].filter(({ name }) => textOf(members[name]) !== '');
  return (
    <dl className="pairs">
      {rows.map(({ name, title }) => (
        <div key={name} style={{ display: 'contents' }}>
          <dt>{visible(title)}</dt>
          <dd>
            <pre className="output">{visible(textOf(members[name]).slice(0, 100_000))}</pre>
          </dd>
        </div>
      ))}
    </dl>
  );
}
