import { useEffect, useState, type ReactNode } from 'react';
import type { JobActionRequest, JobPuppetRequest, JobTargets, JobTaskRequest } from '../../api/client';
import { useAct } from '../../data/query';
import { useGo } from '../../routes/router';
import { Checkbox, Group, Text, TextInput } from '../../ui/kit';
import { ActDialog, Coming } from '../../ui/parts';
import { commandLine, count, many } from '../../ui/words';
import { useSure } from './sure';

interface Orders {
  'job.puppet': JobPuppetRequest;
  'job.task': JobTaskRequest;
  'job.action': JobActionRequest;
}

/** Names, the first of them, and how many more there are. */
const some = (names: string[]) =>
  `${names.slice(0, 5).join(', ')}${names.length > 5 ? ` and ${count(names.length - 5)} more` : ''}`;

/** An order to nodes: it shows first which ones are meant, and orders only if they are still the same. */
export function OrderDialog<N extends keyof Orders>(props: {
  operation: N;
  title: string;
  targets: JobTargets;
  request: Omit<Orders[N], keyof JobOrderParts>;
  words: (string | false | undefined)[]; // the command line, without what is asked here
  close: () => void;
  children?: ReactNode;
}) {
  const { operation, targets, request, close } = props;
  const go = useGo();
  const [wait, setWait] = useState(false);
  const [skip, setSkip] = useState(false);
  const [why, setWhy] = useState('');
  const [atOnce, setAtOnce] = useState('');
  const [budget, setBudget] = useState('');
  const plan = useAct(operation);
  const order = useAct(operation, ['job.list']);
  const { mutate } = plan;
  const wait_offline = wait ? 1800 : 0;
  // The same words are the same nodes, and the same order.
  const wanted = JSON.stringify({ ...request, targets, dry_run: true, wait_offline });
  useEffect(() => mutate(JSON.parse(wanted) as never), [mutate, wanted]);
  const found = plan.data?.plan;
  const offline = found?.offline ?? [];
  const denied = found?.denied ?? [];
  const refused = denied.length + (found?.denied_unseen ?? 0);
  const { sure, field } = useSure(found?.nodes ?? 0);
  const numbers = /^\d*$/;
  const act = () =>
    order.mutate(
      {
        ...request,
        targets,
        wait_offline,
        concurrency: Number(atOnce) || undefined,
        max_failures: budget === '' ? undefined : Number(budget),
        description: why || undefined,
        skip_denied: skip || undefined,
        expect: found?.digest,
      } as never,
      { onSuccess: (started) => go(`/jobs/${started.job?.id}`) },
    );
  return (
    <ActDialog
      title={props.title}
      opened
      close={close}
      act={act}
      word={found ? `Run on ${many(found.nodes, 'node')}` : 'Run'}
      busy={order.isPending}
      error={order.error ?? plan.error}
      blocked={
        !found || found.nodes === 0 || (refused > 0 && !skip) || !numbers.test(atOnce) || !numbers.test(budget) || !sure
      }
      line={commandLine(
        ...props.words,
        wait && '--wait-offline',
        wait && '30m',
        Boolean(Number(atOnce)) && '--concurrency',
        Boolean(Number(atOnce)) && atOnce,
        budget && '--max-failures',
        budget,
        skip && '--skip-denied',
        why && '--description',
        why,
      )}
    >
      {!found && !plan.error && <Coming lines={2} />}
      {found && (
        <Text size="sm">
          {many(found.nodes, 'node')}
          {offline.length > 0 && `, ${count(offline.length)} not connected: ${some(offline)}`}.
        </Text>
      )}
      {refused > 0 && (
        <>
          <Text size="sm" className="many-bad">
            You may not do this on {many(refused, 'node')}
            {denied.length > 0 && `: ${some(denied)}`}.
          </Text>
          <Checkbox label="Leave these nodes out" checked={skip} onChange={(e) => setSkip(e.currentTarget.checked)} />
        </>
      )}
      {offline.length > 0 && (
        <Checkbox
          label="Wait up to 30 minutes for nodes that are not connected"
          checked={wait}
          onChange={(e) => setWait(e.currentTarget.checked)}
        />
      )}
      {props.children}
      <Group gap="xs" align="flex-end" grow>
        <TextInput
          label="At the same time"
          placeholder="all"
          inputMode="numeric"
          value={atOnce}
          error={numbers.test(atOnce) ? undefined : 'a number of nodes'}
          onChange={(e) => setAtOnce(e.currentTarget.value.trim())}
        />
        <TextInput
          label="Failures allowed"
          placeholder="any number"
          inputMode="numeric"
          value={budget}
          error={numbers.test(budget) ? undefined : 'a number of nodes'}
          onChange={(e) => setBudget(e.currentTarget.value.trim())}
        />
      </Group>
      <TextInput
        label="Why"
        description="For those who look at the job later"
        value={why}
        onChange={(e) => setWhy(e.currentTarget.value)}
      />
      {field}
    </ActDialog>
  );
}

/** What every order has, and this dialog asks for. */
type JobOrderParts = Pick<
  JobTaskRequest,
  | 'targets'
  | 'ordered'
  | 'concurrency'
  | 'max_failures'
  | 'timeout'
  | 'wait_offline'
  | 'description'
  | 'dry_run'
  | 'skip_denied'
  | 'expect'
>;
