import { useState } from 'react';
import type { JobTargets } from '../api/client';
import { useMay } from '../data/session';
import { Checkbox, IconPlayerPlay, useDisclosure } from '../ui/kit';
import { ActButton } from '../ui/parts';
import { OrderDialog } from './order/OrderDialog';

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
  const [noop, setNoop] = useState(false);
  return (
    <OrderDialog
      operation="job.puppet"
      title="Run Puppet"
      targets={targets}
      request={{ noop: noop || undefined }}
      words={['run', ...words, noop && '--noop']}
      close={close}
    >
      <Checkbox
        label="Only show what would change (noop)"
        checked={noop}
        onChange={(e) => setNoop(e.currentTarget.checked)}
      />
    </OrderDialog>
  );
}
