import { useState } from 'react';
import type { Task, TaskParameter } from '../api/client';
import { useAsk } from '../data/query';
import { useMay } from '../data/session';
import { usePart, useSearch } from '../routes/router';
import { Checkbox, Group, IconPlayerPlay, SegmentedControl, Stack, Table, Text, useDisclosure } from '../ui/kit';
import { ActButton, Coming, CommandLine, Empty, Failure, Lines, Page, State } from '../ui/parts';
import { bytes, commandLine, flags, short, visible } from '../ui/words';
import { Crumbs } from './Crumbs';
import { JobTable } from './Jobs';
import { elsewhere } from './Tasks';
import { fieldOf } from './tasks/types';
import { useForm, useGiven } from './order/form';
import { InputFields, inputWords, lacks, type Input } from './order/Inputs';
import { OrderDialog } from './order/OrderDialog';
import { chosenIn, TargetFields } from './order/targets';

/** A task: a form made of what it says of itself, what it is, and where it was run. Another task is another page. */
export function TaskPage() {
  const name = usePart('task');
  const [search] = useSearch();
  const environment = search.environment || 'production';
  return <OneTask key={`${environment} ${name}`} name={name} environment={environment} />;
}

const views = [
  { value: 'run', label: 'Run' },
  { value: 'about', label: 'What it is' },
  { value: 'jobs', label: 'Last uses' },
];

function OneTask({ name, environment }: { name: string; environment: string }) {
  const [search, change] = useSearch();
  const asked = useAsk('task.show', { environment, task: name });
  const view = views.find((v) => v.value === search.view)?.value ?? 'run';
  const t = asked.data;
  const where = elsewhere(environment);
  return (
    <Page
      name={`Task ${name}`}
      title={<span className="mono">{visible(name)}</span>}
      above={
        <Crumbs to="/tasks" search={{ environment: where }} of={`Tasks of ${environment}`}>
          {visible(name)}
        </Crumbs>
      }
    >
      {asked.error && <Failure error={asked.error} again={() => void asked.refetch()} />}
      {!t && !asked.error && <Coming />}
      {t && (
        <>
          {t.description && <Text size="sm">{visible(t.description)}</Text>}
          {t.problem && (
            <section className="card bad-card" aria-label="Why it cannot be run">
              <State of="failed">cannot be run</State>{' '}
              <Text size="sm" span>
                {visible(t.problem)}
              </Text>
            </section>
          )}
          <SegmentedControl
            aria-label="What is shown"
            size="xs"
            style={{ alignSelf: 'flex-start' }}
            data={views}
            value={view}
            onChange={(v) => change({ view: v === 'run' ? '' : v }, false)}
          />
          {view === 'run' && <Run t={t} />}
          {view === 'about' && (
            <>
              <About t={t} />
              <CommandLine line={commandLine('task', 'show', name, ...flags({ environment: where }))} />
            </>
          )}
          {view === 'jobs' && (
            <>
              <JobTable
                filter={{ task: name }}
                empty="It was not run yet"
                hint="A job that runs this task is listed here, whoever ordered it."
              />
              <CommandLine line={commandLine('job', 'list', '--task', name)} />
            </>
          )}
        </>
      )}
    </Page>
  );
}

/** What the form asks for. */
function inputsOf(t: Task): Input[] {
  return (t.parameters ?? []).map((p) => ({
    name: p.name,
    about: [p.description, p.type].filter(Boolean).join(' — '),
    field: fieldOf(p.type),
    required: p.required,
    sensitive: p.sensitive ?? false,
    usual: p.default,
  }));
}

/** A text of an object; undefined: it is none. */
function objectIn(text: string): Record<string, unknown> | undefined {
  if (!text.trim()) return {};
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // It is not whole yet.
  }
  return undefined;
}

function Run({ t }: { t: Task }) {
  const [form, setForm] = useForm();
  const may = useMay('task:run');
  const [more, setMore] = useState('');
  const noop = form.noop === 'yes';
  const [asks, asking] = useDisclosure();
  const inputs = inputsOf(t);
  const [given, setGiven] = useGiven(form, setForm, inputs);
  const chosen = chosenIn(form);
  const params = objectIn(more);
  const missing =
    t.problem ||
    lacks(inputs, given) ||
    (!params ? 'The parameters are an object of JSON, such as {"name": "ntp"}.' : '') ||
    (chosen.some ? '' : 'Say on which nodes.');
  const environment = elsewhere(t.environment);
  const words = [
    'task',
    'run',
    t.name,
    ...inputWords(inputs, given),
    more.trim() && '--params',
    more.trim(),
    ...chosen.words,
    ...flags({ environment }),
    noop && '--noop',
  ];
  return (
    <>
      <form
        className="page-scroll"
        aria-label="Run the task"
        onSubmit={(e) => {
          e.preventDefault();
          if (may.may && !missing) asking.open();
        }}
      >
        <div className="form">
          <Stack gap="sm">
            <h2 className="part">Parameters</h2>
            {inputs.length === 0 && !t.any_parameters && <Text size="sm">It takes none.</Text>}
            <InputFields inputs={inputs} given={given} set={setGiven} />
            {t.any_parameters && (
              <Lines
                label="Parameters"
                description="The task does not describe what it takes: an object of JSON"
                placeholder={'{"name": "ntp"}'}
                rows={[2, 14]}
                value={more}
                set={setMore}
              />
            )}
            {t.supports_noop && (
              <Checkbox
                label="Change nothing (noop)"
                checked={noop}
                onChange={(e) => setForm({ noop: e.currentTarget.checked ? 'yes' : '' })}
              />
            )}
          </Stack>
          <Stack gap="sm">
            <h2 className="part">Nodes</h2>
            <TargetFields form={form} set={setForm} />
          </Stack>
        </div>
      </form>
      <Group gap="xs">
        <ActButton
          may={may.may && !missing}
          why={may.why || missing}
          leftSection={<IconPlayerPlay size={16} />}
          onClick={asking.open}
        >
          Run…
        </ActButton>
        {may.may && missing && (
          <Text size="sm" c="dimmed">
            {visible(missing)}
          </Text>
        )}
      </Group>
      <CommandLine line={commandLine(...words)} />
      {asks && (
        <OrderDialog
          operation="job.task"
          title={`Run ${t.name}`}
          targets={chosen.targets}
          request={{
            environment: t.environment,
            task: t.name,
            texts: given,
            params: t.any_parameters ? params : undefined,
            noop: noop || undefined,
          }}
          words={words}
          close={asking.close}
        />
      )}
    </>
  );
}

/** Whether a parameter has to be given, and what it is if it is not. */
function needOf(p: TaskParameter): string {
  const usual = p.default !== undefined && !p.sensitive ? `default ${JSON.stringify(p.default)}` : 'optional';
  return `${p.required ? 'required' : usual}${p.sensitive ? ', secret' : ''}`;
}

function About({ t }: { t: Task }) {
  const parameters = t.parameters ?? [];
  return (
    // What scrolls must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className="page-scroll" aria-label="What it is" tabIndex={0}>
      <dl className="pairs">
        <dt>Environment</dt>
        <dd>
          {t.environment}, version <span className="mono">{short(t.version)}</span>
        </dd>
        <dt>Noop</dt>
        <dd>{t.supports_noop ? 'yes: it can be asked to change nothing' : 'no'}</dd>
        <dt>Files</dt>
        <dd>
          <ul className="values">
            {(t.files ?? []).map((f) => (
              <li key={f.name}>
                <span className="mono">{visible(f.name)}</span>, {bytes(f.bytes)}
              </li>
            ))}
          </ul>
        </dd>
        {(t.implementations ?? []).length > 0 && (
          <>
            <dt>Executables</dt>
            <dd>
              <ul className="values">
                {t.implementations!.map((i) => (
                  <li key={i.name}>
                    <span className="mono">{visible(i.name)}</span>
                    {(i.requirements ?? []).length > 0 && ` for nodes with ${i.requirements!.join(', ')}`}
                  </li>
                ))}
              </ul>
            </dd>
          </>
        )}
      </dl>
      <h2 className="part">Parameters</h2>
      {parameters.length === 0 ? (
        t.any_parameters ? (
          <Text size="sm">Whatever it is given: the task does not describe them.</Text>
        ) : (
          <Empty title="It takes none" />
        )
      ) : (
        <Table aria-label="Parameters" className="words">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Parameter</Table.Th>
              <Table.Th>Type</Table.Th>
              <Table.Th>What for</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {parameters.map((p) => (
              <Table.Tr key={p.name}>
                <Table.Td>
                  <span className="mono">{visible(p.name)}</span>
                  <Text size="xs" c="dimmed">
                    {needOf(p)}
                  </Text>
                </Table.Td>
                <Table.Td className="mono">{visible(p.type)}</Table.Td>
                <Table.Td>{visible(p.description ?? '')}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </section>
  );
}
