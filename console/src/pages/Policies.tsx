import { useState } from 'react';
import type { Freeze, Policy } from '../api/client';
import { useAct, useList } from '../data/query';
import { useMay } from '../data/session';
import { useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Checkbox, Group, SegmentedControl, Text, TextInput } from '../ui/kit';
import { ActButton, ActDialog, CommandLine, Empty, Page, State, Time } from '../ui/parts';
import { commandLine, visible } from '../ui/words';
import { ListOf } from './ListOf';

const everywhere = (environments: string[] | undefined) => (environments ?? []).join(', ') || 'all';
const listed = (text: string) => text.split(/[\s,]+/).filter(Boolean);

/** What releases must keep to: policies judge changes, freezes stop releases for a time. */
export function Policies() {
  const [search, change] = useSearch();
  const freezes = search.view === 'freezes';
  return (
    <Page title="Policies and freezes" name="Policies and freezes">
      <SegmentedControl
        aria-label="What is shown"
        size="xs"
        style={{ alignSelf: 'flex-start' }}
        data={[
          { value: 'policies', label: 'Policies' },
          { value: 'freezes', label: 'Freezes' },
        ]}
        value={freezes ? 'freezes' : 'policies'}
        onChange={(v) => change({ view: v === 'freezes' ? v : '' }, false)}
      />
      {freezes ? <Freezes /> : <Rules />}
    </Page>
  );
}

const ruleColumns = (open: (p: Policy) => void): Column<Policy>[] => [
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
    width: 'minmax(90px, 1fr)',
    from: 900,
    cell: (p) => everywhere(p.environments),
  },
  { key: 'by', title: 'By', width: 'minmax(70px, 1fr)', from: 1200, cell: (p) => p.author },
  { key: 'at', title: 'Since', width: '100px', from: 900, cell: (p) => <Time at={p.at} /> },
];

function Rules() {
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
        columns={ruleColumns(setShown)}
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
      <TextInput
        label="Environments"
        description="Names with commas between them; empty: all"
        value={where}
        onChange={(e) => setWhere(e.currentTarget.value)}
      />
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

/** When a freeze holds, in words. */
function spanOf(f: Freeze): string {
  if (f.weekly) return `${f.weekly} ${f.zone}`;
  const at = (time?: string) => time?.slice(0, 16).replace('T', ' ') ?? '';
  return `${at(f.from)} to ${at(f.to)} UTC`;
}

const freezeColumns = (remove: (f: Freeze) => void): Column<Freeze>[] => [
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
    width: 'minmax(90px, 1fr)',
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

function Freezes() {
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
        columns={freezeColumns(setAsked).filter((c) => may.may || c.key !== 'remove')}
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
      <TextInput
        label="Environments"
        description="Names with commas between them; empty: all"
        value={where}
        onChange={(e) => setWhere(e.currentTarget.value)}
      />
    </ActDialog>
  );
}
