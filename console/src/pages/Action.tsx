import { useEffect, useMemo, useRef, useState } from 'react';
import type { Action, ActionField, ActionModule } from '../api/client';
import { callEach, Refusal, type ActionAnswer } from '../api/client';
import { useAgain, useAsk } from '../data/query';
import { useMay } from '../data/session';
import { actionAddress, Link, usePart, useSearch } from '../routes/router';
import { DataTable, type Column } from '../ui/DataTable';
import { Group, IconPlayerPlay, Stack, Table, Text, TextInput, useDisclosure } from '../ui/kit';
import { ActButton, Coming, CommandLine, Failure, Page, State } from '../ui/parts';
import { commandLine, count, many, short, visible } from '../ui/words';
import { Answers, type Standing } from './actions/Answers';
import { folded } from './actions/fold';
import { Crumbs } from './Crumbs';
import type { Field } from './tasks/types';
import { useForm, useGiven } from './order/form';
import { InputFields, inputWords, lacks, type Input } from './order/Inputs';
import { OrderDialog } from './order/OrderDialog';
import { chosenIn, TargetFields, targetsOf } from './order/targets';

/** A module of nodes, and one of its actions. Another one is another page. */
export function ActionPage() {
  const module = usePart('module');
  const [search] = useSearch();
  return <OneModule key={`${module} ${search.action ?? ''}`} module={module} name={search.action ?? ''} />;
}

function OneModule({ module, name }: { module: string; name: string }) {
  const asked = useAsk('action.show', { module });
  const m = asked.data;
  const action = m?.actions?.find((a) => a.name === name);
  const title = name ? `${module} ${name}` : module;
  return (
    <Page
      name={title}
      title={
        <Group gap="sm">
          <span className="mono">{visible(title)}</span>
          {action && <Mark action={action} />}
        </Group>
      }
      above={
        name ? (
          <Crumbs to={actionAddress(module)} of={`Actions of ${module}`}>
            {visible(name)}
          </Crumbs>
        ) : (
          <Crumbs to="/actions" of="Actions">
            {visible(module)}
          </Crumbs>
        )
      }
    >
      {asked.error && <Failure error={asked.error} again={() => void asked.refetch()} />}
      {!m && !asked.error && <Coming />}
      {m && !name && <Module m={m} />}
      {m && name && !action && (
        <Text>
          The module has no action {visible(name)}. <Link to={actionAddress(module)}>Its actions</Link>
        </Text>
      )}
      {m && action && <Call m={m} action={action} />}
    </Page>
  );
}

/** Whether an action changes anything on a node. */
function Mark({ action }: { action: Action }) {
  return <State of={action.read_only ? 'reads only' : 'changes nodes'} />;
}

const columns = (module: string, taken: Record<string, string | undefined>): Column<Action>[] => [
  {
    key: 'name',
    title: 'Action',
    width: 'minmax(110px, 1fr)',
    cell: (a) => (
      <Link to={actionAddress(module)} search={{ ...taken, action: a.name }} className="mono">
        {a.name}
      </Link>
    ),
  },
  { key: 'mark', title: 'What it may do', width: '140px', cell: (a) => <Mark action={a} /> },
  {
    key: 'description',
    title: 'What it does',
    width: 'minmax(140px, 3fr)',
    from: 600,
    cell: (a) => <span title={visible(a.description ?? '')}>{visible(a.description ?? '')}</span>,
  },
  {
    key: 'inputs',
    title: 'Takes',
    width: 'minmax(110px, 2fr)',
    from: 900,
    cell: (a) => (a.inputs ?? []).map((f) => f.name).join(', ') || 'nothing',
  },
];

function Module({ m }: { m: ActionModule }) {
  const [search, change] = useSearch();
  const problems = m.problems ?? [];
  return (
    <>
      {m.description && <Text size="sm">{visible(m.description)}</Text>}
      <Text size="sm" c="dimmed">
        {[`${many(m.nodes, 'node')} can use it`, m.author && `by ${visible(m.author)}`, m.license && visible(m.license)]
          .filter(Boolean)
          .join(', ')}
      </Text>
      {problems.length > 0 && (
        <ul className="changes" aria-label="Why nodes cannot use it">
          {problems.slice(0, 20).map((p) => (
            <li key={`${p.provider} ${p.version} ${p.problem}`} data-bad>
              <b>{many(p.nodes, 'node')}</b>: {visible(p.problem)}{' '}
              <Text size="sm" c="dimmed" span>
                for example {(p.examples ?? []).join(', ')}
              </Text>
            </li>
          ))}
        </ul>
      )}
      <DataTable
        label={`Actions of ${m.module}`}
        columns={columns(m.module, targetsOf(search))}
        rows={m.actions ?? []}
        rowKey={(a) => a.name}
        whole
        onOpen={(a) => change({ action: a.name }, false)}
        empty={<Text p="md">No node has told yet what it can do.</Text>}
      />
      <Table aria-label="Versions">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Version</Table.Th>
            <Table.Th>From</Table.Th>
            <Table.Th>Digest</Table.Th>
            <Table.Th ta="right">Nodes</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {(m.versions ?? []).map((v) => (
            <Table.Tr key={`${v.provider} ${v.digest}`}>
              <Table.Td>{visible(v.version ?? '–')}</Table.Td>
              <Table.Td>{v.provider}</Table.Td>
              <Table.Td className="mono">{short(v.digest)}</Table.Td>
              <Table.Td ta="right">{count(v.nodes)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <CommandLine line={commandLine('action', 'show', m.module)} />
    </>
  );
}

function fieldOf(f: ActionField): Field {
  if ((f.values ?? []).length > 0) return { kind: 'choice', values: f.values! };
  switch (f.type) {
    case 'boolean':
      return { kind: 'boolean' };
    case 'integer':
    case 'number':
      return { kind: 'number', whole: f.type === 'integer' };
    case 'array':
    case 'object':
      return { kind: 'json' };
  }
  return { kind: 'text', empty: f.type === 'string' && !f.format };
}

function inputsOf(action: Action): Input[] {
  return (action.inputs ?? []).map((f) => ({
    name: f.name,
    title: f.title || f.name,
    about: [
      f.description,
      f.format && `format ${f.format}`,
      f.max_length && `at most ${many(f.max_length, 'character')}`,
      f.title && f.title.toLowerCase() !== f.name.toLowerCase() && `called ${f.name}`,
    ]
      .filter(Boolean)
      .join(' — '),
    field: fieldOf(f),
    required: f.required ?? false,
    sensitive: f.sensitive ?? false,
    usual: f.default,
  }));
}

const nobody: Standing = { nodes: 0, groups: new Map(), over: false, stopped: false, took: 0 };

/** Asks an action that only reads; many answers at once are one change of the page. */
function useCall() {
  const [call, setCall] = useState<Standing>();
  const stop = useRef<AbortController>(undefined);
  const again = useAgain();
  useEffect(() => () => stop.current?.abort(), []);
  const begin = async (request: Parameters<typeof callEach<'action.ask'>>[1]) => {
    stop.current?.abort();
    const mine = new AbortController();
    stop.current = mine;
    const begun = performance.now();
    setCall(nobody);
    let waiting: ActionAnswer[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      timer = undefined;
      const came = waiting;
      waiting = [];
      if (came.length > 0) setCall((c = nobody) => ({ ...c, groups: folded(c.groups, came) }));
    };
    const end = (more: Partial<Standing>) => {
      clearTimeout(timer);
      if (stop.current !== mine) return; // another call has begun
      draw();
      setCall((c = nobody) => ({ ...c, over: true, took: performance.now() - begun, ...more }));
    };
    try {
      await callEach(
        'action.ask',
        request,
        (e) => {
          if (stop.current !== mine) return;
          if (e.asked) {
            const { action, nodes } = e.asked;
            setCall((c = nobody) => ({ ...c, action, nodes }));
          }
          if (e.answer) waiting.push(e.answer);
          timer ??= setTimeout(draw, 250);
        },
        mine.signal,
      );
      end({ stopped: mine.signal.aborted });
    } catch (cause) {
      if (!(cause instanceof Refusal)) throw cause;
      end({ error: cause });
    }
    again('action.calls');
  };
  return { call, begin, stop: () => stop.current?.abort() };
}

function Call({ m, action }: { m: ActionModule; action: Action }) {
  const [form, setForm] = useForm();
  const may = useMay(action.read_only ? 'action:ask' : 'action:run');
  const [batch, setBatch] = useState('');
  const [patience, setPatience] = useState('');
  const [orders, ordering] = useDisclosure();
  const { call, begin, stop } = useCall();
  const inputs = useMemo(() => inputsOf(action), [action]);
  const [given, setGiven] = useGiven(form, setForm, inputs);
  const chosen = chosenIn(form);
  const numbers = /^\d*$/;
  const missing =
    lacks(inputs, given) ||
    (chosen.some ? '' : 'Say on which nodes.') ||
    (numbers.test(batch) && numbers.test(patience) ? '' : 'Give a number of nodes and of seconds.');
  const words = [
    ...['action', 'run', m.module, action.name],
    ...inputWords(inputs, given),
    ...chosen.words,
    batch && '--batch',
    batch,
    patience && '--timeout',
    patience && `${patience}s`,
  ];
  const act = () => {
    if (!action.read_only) {
      ordering.open();
      return;
    }
    void begin({
      module: m.module,
      action: action.name,
      texts: given,
      targets: chosen.targets,
      batch: Number(batch) || undefined,
      batch_sleep: batch ? 1000 : undefined,
      timeout: Number(patience) * 1000 || undefined,
    });
  };
  return (
    <>
      <form
        className="page-scroll"
        aria-label="Call the action"
        onSubmit={(e) => {
          e.preventDefault();
          if (may.may && !missing) act();
        }}
      >
        {action.description && (
          <Text size="sm" mb="xs">
            {visible(action.description)}
          </Text>
        )}
        <div className="form">
          <Stack gap="sm">
            <h2 className="part">Input</h2>
            {inputs.length === 0 && <Text size="sm">It takes none.</Text>}
            <InputFields inputs={inputs} given={given} set={setGiven} />
          </Stack>
          <Stack gap="sm">
            <h2 className="part">Nodes</h2>
            <TargetFields form={form} set={setForm} />
            {action.read_only && (
              <Group gap="xs" grow>
                <TextInput
                  label="At a time"
                  placeholder="all"
                  inputMode="numeric"
                  value={batch}
                  onChange={(e) => setBatch(e.currentTarget.value.trim())}
                />
                <TextInput
                  label="Seconds to answer"
                  placeholder={action.timeout ? String(action.timeout) : 'as the server says'}
                  inputMode="numeric"
                  value={patience}
                  onChange={(e) => setPatience(e.currentTarget.value.trim())}
                />
              </Group>
            )}
          </Stack>
        </div>
        <Group gap="xs" my="sm">
          <ActButton
            may={may.may && !missing}
            why={may.why || missing}
            leftSection={<IconPlayerPlay size={16} />}
            onClick={act}
          >
            {action.read_only ? 'Ask' : 'Run…'}
          </ActButton>
          {may.may && missing && (
            <Text size="sm" c="dimmed">
              {visible(missing)}
            </Text>
          )}
        </Group>
        {call && <Answers call={call} stop={stop} />}
      </form>
      <CommandLine line={commandLine(...words)} />
      {orders && (
        <OrderDialog
          operation="job.action"
          title={`Run ${m.module} ${action.name}`}
          targets={chosen.targets}
          request={{ module: m.module, action: action.name, texts: given }}
          words={words}
          close={ordering.close}
        />
      )}
    </>
  );
}
