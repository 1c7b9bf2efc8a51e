import { useEffect, useState } from 'react';
import type { JobTargets } from '../api/client';
import { useAct } from '../data/query';
import { useMay } from '../data/session';
import { useGo } from '../routes/router';
import { Checkbox, IconPlayerPlay, Text, TextInput, useDisclosure } from '../ui/kit';
import { ActButton, ActDialog, Coming } from '../ui/parts';
import { commandLine, count, many } from '../ui/words';

/** Above so many nodes the person types the number. */
const threshold = 50;

/** A button that runs Puppet on nodes: it shows which ones first, and orders only if they are still the same. */
export function RunButton({ targets, words, disabled }: { targets: JobTargets; words: string[]; disabled?: boolean }) {
  const [opened, dialog] = useDisclosure();
  const { may, why } = useMay('puppet:run');
  return (
    <>
      <ActButton
        may={may && !disabled}
        why={disabled && may ? 'Choose nodes first, or narrow the list.' : why}
        onClick={dialog.open}
        leftSection={<IconPlayerPlay size={16} />}
      >
        Run Puppet…
      </ActButton>
      {opened && <RunDialog targets={targets} words={words} close={dialog.close} />}
    </>
  );
}

function RunDialog({ targets, words, close }: { targets: JobTargets; words: string[]; close: () => void }) {
  const go = useGo();
  const [noop, setNoop] = useState(false);
  const [wait, setWait] = useState(false);
  const [why, setWhy] = useState('');
  const [typed, setTyped] = useState('');
  const plan = useAct('job.puppet');
  const order = useAct('job.puppet', ['job.list']);
  const { mutate } = plan;
  const wanted = JSON.stringify(targets); // the same words are the same nodes
  useEffect(
    () => mutate({ targets: JSON.parse(wanted) as JobTargets, dry_run: true, wait_offline: wait ? 1800 : 0 }),
    [mutate, wanted, wait],
  );
  const found = plan.data?.plan;
  const offline = found?.offline ?? [];
  const large = (found?.nodes ?? 0) > threshold;
  const act = () =>
    order.mutate(
      {
        targets,
        noop: noop || undefined,
        wait_offline: wait ? 1800 : 0,
        description: why || undefined,
        expect: found?.digest,
      },
      { onSuccess: (started) => go(`/jobs/${started.job?.id}`) },
    );
  return (
    <ActDialog
      title="Run Puppet"
      opened
      close={close}
      act={act}
      word={found ? `Run on ${many(found.nodes, 'node')}` : 'Run'}
      busy={order.isPending}
      error={order.error ?? plan.error}
      blocked={!found || found.nodes === 0 || (large && typed !== String(found.nodes))}
      line={commandLine(
        'run',
        ...words,
        noop && '--noop',
        wait && '--wait-offline',
        wait && '30m',
        why && '--description',
        why,
      )}
    >
      {!found && !plan.error && <Coming lines={2} />}
      {found && (
        <Text size="sm">
          {many(found.nodes, 'node')}
          {offline.length > 0 && `, ${count(offline.length)} not connected: ${offline.slice(0, 5).join(', ')}`}
          {offline.length > 5 && ` and ${count(offline.length - 5)} more`}.
        </Text>
      )}
      {offline.length > 0 && (
        <Checkbox
          label="Wait up to 30 minutes for nodes that are not connected"
          checked={wait}
          onChange={(e) => setWait(e.currentTarget.checked)}
        />
      )}
      <Checkbox
        label="Only show what would change (noop)"
        checked={noop}
        onChange={(e) => setNoop(e.currentTarget.checked)}
      />
      <TextInput
        label="Why"
        description="For those who look at the job later"
        value={why}
        onChange={(e) => setWhy(e.currentTarget.value)}
      />
      {large && (
        <TextInput
          label={`Type the number of nodes, ${found?.nodes}`}
          value={typed}
          onChange={(e) => setTyped(e.currentTarget.value.trim())}
        />
      )}
    </ActDialog>
  );
}
