import { useState } from 'react';
import type { Policy } from '../../api/client';
import { useAct, useList } from '../../data/query';
import { useMay } from '../../data/session';
import type { Column } from '../../ui/DataTable';
import { Checkbox, Group, SegmentedControl, Text, TextInput } from '../../ui/kit';
import { ActButton, ActDialog, CommandLine, Empty, State, Time } from '../../ui/parts';
import { commandLine, listed, visible } from '../../ui/words';
import { EnvironmentNames, everywhere } from '../change/Environment';
import { ListOf } from '../ListOf';

const columns = (open: (p: Policy) => void): Column<Policy>[] => [
  {
    key: 'name',
    title: 'Policy',
    width: 'minmax(110px, 1fr)',
    cell: (p) => (
      <button type="button" className="as-link" aria-label={`Open ${p.name}`} onClick={() => open(p)}>
        {p.name}
      </button>
    ),
  },
  {
    key: 'effect',
    title: 'Effect',
    width: 'minmax(110px, 1fr)',
    cell: (p) => <State of={p.effect}>{p.role ? `${p.effect} by ${p.role}` : p.effect}</State>,
  },
  {
    key: 'when',
    title: 'When',
    width: 'minmax(140px, 3fr)',
    from: 600,
    cell: (p) => (
      <span className="mono" title={p.when}>
        {visible(p.when)}
      </span>
    ),
  },
  {
    key: 'environments',
    title: 'Environments',
    width: 'minmax(110px, 1fr)',
    from: 900,
    cell: (p) => everywhere(p.environments),
  },
  { key: 'by', title: 'By', width: 'minmax(70px, 1fr)', from: 1200, cell: (p) => p.author },
  { key: 'at', title: 'Since', width: '100px', from: 900, cell: (p) => <Time at={p.at} /> },
];

/** Policies: each judges the changes of a release. */
export default function Rules() {
  const list = useList('policy.list', {});
  const may = useMay('policy:write');
  const [shown, setShown] = useState<Partial<Policy>>();
  return (
    <>
      <Group>
        <ActButton {...may} onClick={() => setShown({})}>
          New policy…
        </ActButton>
      </Group>
      <ListOf
        label="Policies"
        list={list}
        columns={columns(setShown)}
        rowKey={(p) => p.name}
        onOpen={setShown}
        empty={
          <Empty title="No policies yet">
            <Text size="sm">
              A policy denies a change, asks for an approval of it, or warns of it, before it is released.
            </Text>
          </Empty>
        }
      />
      {shown && <Rule key={shown.name ?? ''} p={shown} close={() => setShown(undefined)} />}
      <CommandLine line={commandLine('policy', 'list')} />
    </>
  );
}

function Rule({ p, close }: { p: Partial<Policy>; close: () => void }) {
  const may = useMay('policy:write');
  const [name, setName] = useState(p.name ?? '');
  const [effect, setEffect] = useState(p.effect ?? 'deny');
  const [role, setRole] = useState(p.role ?? '');
  const [authorMay, setAuthorMay] = useState(p.author_may ?? false);
  const [when, setWhen] = useState(p.when ?? '');
  const [message, setMessage] = useState(p.message ?? '');
  const [where, setWhere] = useState((p.environments ?? []).join(', '));
  const [removes, setRemoves] = useState(false);
  const set = useAct('policy.set', ['policy.list', 'policy.test']);
  const remove = useAct('policy.remove', ['policy.list', 'policy.test']);
  const approve = effect === 'approve';
  const environments = listed(where);
  if (removes) {
    return (
      <ActDialog
        title={`Remove ${name}`}
        opened
        close={() => setRemoves(false)}
        act={() => remove.mutate({ policy: name }, { onSuccess: close })}
        word="Remove"
        danger
        busy={remove.isPending}
        error={remove.error}
        line={commandLine('policy', 'delete', name)}
      >
        <Text size="sm">It judges no release any more. Its history stays.</Text>
      </ActDialog>
    );
  }
  return (
    <ActDialog
      title={p.name ?? 'New policy'}
      opened
      close={close}
      act={() =>
        set.mutate(
          {
            policy: name,
            definition: {
              effect,
              role: approve ? role : undefined,
              author_may: (approve && authorMay) || undefined,
              when,
              message,
              environments: environments.length > 0 ? environments : undefined,
              zone: p.zone,
            },
          },
          { onSuccess: close },
        )
      }
      word={p.name ? 'Change' : 'Make'}
      busy={set.isPending}
      error={set.error}
      blocked={!may.may || !name || !when || !message || (approve && !role)}
      line={commandLine(
        'policy',
        'set',
        name || 'POLICY',
        effect !== 'deny' && '--effect',
        effect !== 'deny' && effect,
        approve && role && '--role',
        approve && role,
        approve && authorMay && '--author-may',
        '--when',
        when || 'EXPRESSION',
        '--message',
        message || 'TEXT',
        ...environments.flatMap((e) => ['--environment', e]),
        p.zone && '--zone',
        p.zone,
      )}
    >
      {may.why && <Text size="sm">{may.why}</Text>}
      {!p.name && (
        <TextInput label="Name" required value={name} onChange={(e) => setName(e.currentTarget.value.trim())} />
      )}
      <TextInput
        label="When"
        required
        description={'Which changes: change.kind == "removed" and change.nodes > 10'}
        value={when}
        onChange={(e) => setWhen(e.currentTarget.value)}
      />
      <SegmentedControl aria-label="Effect" data={['deny', 'approve', 'warn']} value={effect} onChange={setEffect} />
      {approve && (
        <>
          <TextInput
            label="Who approves"
            description="A role"
            required
            value={role}
            onChange={(e) => setRole(e.currentTarget.value.trim())}
          />
          <Checkbox
            label="The author’s own approval is good enough"
            checked={authorMay}
            onChange={(e) => setAuthorMay(e.currentTarget.checked)}
          />
        </>
      )}
      <TextInput
        label="Message"
        required
        description="What people should know"
        value={message}
        onChange={(e) => setMessage(e.currentTarget.value)}
      />
      <EnvironmentNames value={where} set={setWhere} />
      {p.name && may.may && (
        <div>
          <button type="button" className="as-link" onClick={() => setRemoves(true)}>
            Remove the policy…
          </button>
        </div>
      )}
    </ActDialog>
  );
}
