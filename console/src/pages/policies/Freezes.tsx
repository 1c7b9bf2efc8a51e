import { useState } from 'react';
import type { Freeze } from '../../api/client';
import { useAct, useList } from '../../data/query';
import { useMay } from '../../data/session';
import type { Column } from '../../ui/DataTable';
import { Choice } from '../../ui/filters';
import { Group, SegmentedControl, Text, TextInput } from '../../ui/kit';
import { ActButton, ActDialog, CommandLine, Empty, State } from '../../ui/parts';
import { commandLine, listed, visible } from '../../ui/words';
import { EnvironmentNames, everywhere } from '../change/Environment';
import { ListOf } from '../ListOf';

/** When a freeze holds, in words. */
function spanOf(f: Freeze): string {
  if (f.weekly) return `${f.weekly} ${f.zone}`;
  const at = (time?: string) => time?.slice(0, 16).replace('T', ' ') ?? '';
  return `${at(f.from)} to ${at(f.to)} UTC`;
}

const columns = (remove: (f: Freeze) => void): Column<Freeze>[] => [
  { key: 'name', title: 'Freeze', width: 'minmax(90px, 1fr)', cell: (f) => f.name },
  {
    key: 'now',
    title: 'Now',
    width: '100px',
    cell: (f) => (f.until ? <State of="paused">holds</State> : <State of="waiting">not now</State>),
  },
  {
    key: 'span',
    title: 'When',
    width: 'minmax(150px, 2fr)',
    from: 600,
    cell: (f) => <span title={spanOf(f)}>{spanOf(f)}</span>,
  },
  {
    key: 'why',
    title: 'Why',
    width: 'minmax(110px, 2fr)',
    from: 900,
    cell: (f) => <span title={visible(f.why)}>{visible(f.why)}</span>,
  },
  {
    key: 'environments',
    title: 'Environments',
    width: 'minmax(110px, 1fr)',
    from: 1200,
    cell: (f) => everywhere(f.environments),
  },
  { key: 'by', title: 'By', width: '90px', from: 900, cell: (f) => f.author },
  {
    key: 'remove',
    title: 'Remove',
    width: '80px',
    cell: (f) => (
      <button type="button" className="as-link" aria-label={`Remove… ${f.name}`} onClick={() => remove(f)}>
        Remove…
      </button>
    ),
  },
];

/** Freezes: while one holds no release begins. */
export default function Freezes() {
  const list = useList('freeze.list', {}, { every: 60_000 });
  const may = useMay('policy:write');
  const [makes, setMakes] = useState(false);
  const [asked, setAsked] = useState<Freeze>();
  const remove = useAct('freeze.remove', ['freeze.list', 'policy.test']);
  return (
    <>
      <Group>
        <ActButton {...may} onClick={() => setMakes(true)}>
          New freeze…
        </ActButton>
      </Group>
      <ListOf
        label="Freezes"
        list={list}
        columns={columns(setAsked).filter((c) => may.may || c.key !== 'remove')}
        rowKey={(f) => f.name}
        empty={
          <Empty title="No freezes yet">
            <Text size="sm">During a freeze no release begins; those that run wait until it is over.</Text>
          </Empty>
        }
      />
      {makes && <NewFreeze close={() => setMakes(false)} />}
      <ActDialog
        title={`Remove ${asked?.name ?? ''}`}
        opened={asked !== undefined}
        close={() => setAsked(undefined)}
        act={() => asked && remove.mutate({ freeze: asked.name }, { onSuccess: () => setAsked(undefined) })}
        word="Remove"
        danger
        busy={remove.isPending}
        error={remove.error}
        line={commandLine('policy', 'freeze', 'delete', asked?.name)}
      >
        <Text size="sm">
          {asked?.until ? 'It holds now: releases that wait for its end go on.' : 'It does not hold now.'}
        </Text>
      </ActDialog>
      <CommandLine line={commandLine('policy', 'freeze', 'list')} />
    </>
  );
}

function NewFreeze({ close }: { close: () => void }) {
  const [name, setName] = useState('');
  const [kind, setKind] = useState('once');
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const [weekly, setWeekly] = useState('');
  const [why, setWhy] = useState('');
  const [where, setWhere] = useState('');
  const [zone, setZone] = useState('UTC');
  const set = useAct('freeze.set', ['freeze.list', 'policy.test']);
  const once = kind === 'once';
  const environments = listed(where);
  const time = (text: string) => `${text}:00Z`;
  const zones = [...new Set(['UTC', new Intl.DateTimeFormat().resolvedOptions().timeZone])];
  return (
    <ActDialog
      title="New freeze"
      opened
      close={close}
      act={() =>
        set.mutate(
          {
            freeze: name,
            definition: {
              ...(once ? { from: time(from), to: time(to), zone: 'UTC' } : { weekly, zone }),
              why,
              environments: environments.length > 0 ? environments : undefined,
            },
          },
          { onSuccess: close },
        )
      }
      word="Make"
      busy={set.isPending}
      error={set.error}
      blocked={!name || !why || (once ? !from || !to : !weekly)}
      line={commandLine(
        'policy',
        'freeze',
        'set',
        name || 'FREEZE',
        ...(once
          ? ['--from', from ? time(from) : 'TIME', '--to', to ? time(to) : 'TIME', '--zone', 'UTC']
          : ['--weekly', weekly || 'TIMES', '--zone', zone]),
        '--why',
        why || 'TEXT',
        ...environments.flatMap((e) => ['--environment', e]),
      )}
    >
      <TextInput label="Name" required value={name} onChange={(e) => setName(e.currentTarget.value.trim())} />
      <SegmentedControl
        aria-label="How often"
        data={[
          { value: 'once', label: 'Once' },
          { value: 'weekly', label: 'Every week' },
        ]}
        value={kind}
        onChange={setKind}
      />
      {once ? (
        <>
          <TextInput
            type="datetime-local"
            label="From"
            description="In UTC"
            required
            value={from}
            onChange={(e) => setFrom(e.currentTarget.value)}
          />
          <TextInput
            type="datetime-local"
            label="To"
            description="In UTC"
            required
            value={to}
            onChange={(e) => setTo(e.currentTarget.value)}
          />
        </>
      ) : (
        <>
          <TextInput
            label="When"
            required
            description="Such as fri 16:00-mon 06:00, or daily 22:00-23:30"
            value={weekly}
            onChange={(e) => setWeekly(e.currentTarget.value)}
          />
          <Choice label="Time zone" any="UTC" data={zones} value={zone} set={(z) => setZone(z || 'UTC')} />
        </>
      )}
      <TextInput label="Why" required value={why} onChange={(e) => setWhy(e.currentTarget.value)} />
      <EnvironmentNames value={where} set={setWhere} />
    </ActDialog>
  );
}
