import { lazy, Suspense, useState } from 'react';
import type { PreviewReport } from '../api/client';
import { useCalmly, useStream } from '../data/live';
import { useAct, useAgain, useAsk } from '../data/query';
import { mayDo, useMay, useSession } from '../data/session';
import { Link, usePart, useSearch } from '../routes/router';
import {
  Button,
  Group,
  IconPlayerStop,
  IconRocket,
  Menu,
  SegmentedControl,
  Stack,
  Text,
  TextInput,
  useDisclosure,
} from '../ui/kit';
import { ActButton, ActDialog, Bar, Coming, CommandLine, Failure, Page, State, Time, Whisper } from '../ui/parts';
import { commandLine, count, many, short, visible } from '../ui/words';
import { ReleaseDialog } from './change/ReleaseDialog';
import { Crumbs } from './Crumbs';

const Changes = lazy(() => import('./preview/Changes'));
const PreviewNodes = lazy(() => import('./preview/Nodes'));
const Warnings = lazy(() => import('./preview/Warnings'));

/** The states of nodes, what needs somebody first, and what is said of them. */
const states = [
  ['failed', 'do not compile'],
  ['unable', 'cannot be compiled for'],
  ['changed', 'change'],
  ['first', 'have no catalog to compare with'],
  ['reordered', 'change in order only'],
  ['same', 'stay as they are'],
  ['waiting', 'not known yet'],
] as const;

/** A preview: what a version would change, and on which nodes. */
export function PreviewPage() {
  const id = usePart('preview');
  return <OnePreview key={id} id={id} />;
}

function OnePreview({ id }: { id: string }) {
  const [search, change] = useSearch();
  const show = useAsk('preview.show', { preview: id, limit: 200 });
  const again = useAgain();
  const p = show.data;
  const moved = useCalmly(() => again('preview.show', 'preview.nodes'), 1000);
  const link = useStream('preview.events', p?.state === 'compiling' ? { preview: id } : undefined, moved);
  if (show.error) return <Failure error={show.error} again={() => void show.refetch()} />;
  if (!p) return <Coming />;
  const view = search.view ?? 'changes';
  const lines: Record<string, string> = {
    changes: commandLine(
      'preview',
      p.state === 'compiling' ? 'watch' : 'show',
      id,
      Boolean(search.noise) && '--noise',
      Boolean(search.order) && '--order',
    ),
    nodes: search.node
      ? commandLine('preview', 'diff', id, search.node)
      : commandLine(
          'preview',
          'nodes',
          id,
          search.state && '--state',
          search.state,
          search.change && '--change',
          search.change,
        ),
    warnings: commandLine('preview', 'warnings', id),
  };
  return (
    <Page
      name={`Preview ${id}`}
      title={
        <Group gap="sm">
          <span>{visible(p.description || `Preview ${id}`)}</span>
          <State of={p.state} />
          {link === 'lost' && <State of="lost">reconnecting</State>}
        </Group>
      }
      above={
        <Crumbs to="/previews" of="Previews">
          {id}
        </Crumbs>
      }
      actions={<Acts p={p} />}
    >
      <Numbers p={p} />
      <SegmentedControl
        aria-label="What is shown"
        size="xs"
        style={{ alignSelf: 'flex-start' }}
        data={[
          { value: 'changes', label: 'Changes' },
          { value: 'nodes', label: 'Nodes' },
          { value: 'warnings', label: 'Warnings' },
        ]}
        value={view}
        onChange={(v) => change({ view: v === 'changes' ? '' : v, state: '', change: '', node: '' }, false)}
      />
      <Suspense fallback={<Coming />}>
        {view === 'nodes' ? (
          <PreviewNodes p={p} />
        ) : view === 'warnings' ? (
          <Warnings id={id} />
        ) : (
          <Changes id={id} p={p} />
        )}
      </Suspense>
      <CommandLine line={lines[view] ?? ''} />
      <Whisper text={`${p.state}: ${told(p)}`} />
    </Page>
  );
}

function told(p: PreviewReport): string {
  return states
    .filter(([state]) => (p.counts?.[state] ?? 0) > 0)
    .map(([state, words]) => `${count(p.counts?.[state] ?? 0)} ${words}`)
    .join(', ');
}

function Numbers({ p }: { p: PreviewReport }) {
  const { session } = useSession();
  const parts = states.map(([state, words]) => ({ state, words, n: p.counts?.[state] ?? 0 })).filter((s) => s.n > 0);
  const verdict = useAsk(
    'policy.test',
    { preview: p.id },
    { enabled: p.state === 'ready' && mayDo(session, 'policy:read') },
  );
  const findings = verdict.data?.findings ?? [];
  return (
    <section className="card" aria-label="Numbers">
      <Bar parts={parts} label={told(p)} />
      <Group gap="4px 16px" mt={8} fz="sm">
        {parts.map((s) => (
          <Link key={s.state} to={`/previews/${p.id}`} search={{ view: 'nodes', state: s.state }}>
            <span className={s.state === 'failed' ? 'many-bad' : undefined}>{count(s.n)}</span> {s.words}
          </Link>
        ))}
      </Group>
      <Text size="sm" c="dimmed" mt={4}>
        {many(p.nodes, 'node')} of {visible(p.targets)}; version <span className="mono">{short(p.version)}</span>
        {p.commit && `, commit ${short(p.commit)}`}
        {p.engine && `, compiled by ${p.engine}`}; asked for by {p.author} <Time at={p.created_at} />
        {p.reason && `. ${visible(p.reason)}`}
      </Text>
      {(p.quiet ?? 0) > 0 && (
        <Text size="sm" c="dimmed">
          {many(p.quiet!, 'node')} of those that change do so in noise only.
        </Text>
      )}
      {(p.unseen ?? []).map((u) => (
        <Text size="sm" c="dimmed" key={u.reason}>
          Not seen: {visible(u.reason)} ({many(u.nodes, 'node')})
        </Text>
      ))}
      {verdict.data?.frozen && (
        <div>
          <State of="paused">frozen</State>{' '}
          <Text span size="sm">
            {visible(verdict.data.frozen.why)}, until <Time at={verdict.data.frozen.until} />
          </Text>
        </div>
      )}
      {findings.map((f) => (
        <div key={f.policy}>
          <State of={f.effect} />{' '}
          <Text span size="sm">
            {visible(`${f.policy}: ${f.broken || f.message}`)}, {many(f.nodes, 'node')}
            {f.role && ` (${f.role})`}
          </Text>
        </div>
      ))}
    </section>
  );
}

function Acts({ p }: { p: PreviewReport }) {
  const [releases, releasing] = useDisclosure();
  const [asked, setAsked] = useState<'all' | 'comment' | 'cancel'>();
  const [text, setText] = useState('');
  const say = useAct('preview.say', ['preview.show', 'policy.test']);
  const cancel = useAct('preview.cancel', ['preview.show', 'preview.nodes', 'preview.list']);
  const mayRelease = useMay('release:create');
  const maySay = useMay('preview:create');
  const close = () => {
    setAsked(undefined);
    setText('');
  };
  return (
    <>
      {p.state === 'compiling' && (
        <ActButton
          {...maySay}
          variant="default"
          leftSection={<IconPlayerStop size={16} />}
          onClick={() => setAsked('cancel')}
        >
          Cancel…
        </ActButton>
      )}
      <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
        <Menu.Target>
          <Button size="xs" variant="default">
            Say…
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {maySay.why && <Menu.Label>{maySay.why}</Menu.Label>}
          <Menu.Item disabled={!maySay.may} onClick={() => setAsked('comment')}>
            Comment…
          </Menu.Item>
          <Menu.Item disabled={!maySay.may || p.state !== 'ready'} onClick={() => setAsked('all')}>
            Acknowledge all changes…
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {p.state === 'ready' && (
        <ActButton {...mayRelease} leftSection={<IconRocket size={16} />} onClick={releasing.open}>
          Release…
        </ActButton>
      )}
      {releases && <ReleaseDialog preview={p.id} close={releasing.close} />}
      <ActDialog
        title={asked === 'all' ? 'Acknowledge all changes' : `Comment on preview ${p.id}`}
        opened={asked === 'all' || asked === 'comment'}
        close={close}
        act={() =>
          say.mutate(
            asked === 'all'
              ? { preview: p.id, kind: 'acknowledged', all: true, text: text || undefined }
              : { preview: p.id, kind: 'comment', text },
            { onSuccess: close },
          )
        }
        word={asked === 'all' ? 'Acknowledge' : 'Comment'}
        busy={say.isPending}
        error={say.error}
        blocked={asked === 'comment' && !text}
        line={
          asked === 'all'
            ? commandLine('preview', 'ack', p.id, '--all', text && '--text', text)
            : commandLine('preview', 'comment', p.id, '--text', text || 'TEXT')
        }
      >
        <TextInput
          label={asked === 'all' ? 'Why' : 'Comment'}
          value={text}
          onChange={(e) => setText(e.currentTarget.value)}
        />
      </ActDialog>
      <ActDialog
        title={`Cancel preview ${p.id}`}
        opened={asked === 'cancel'}
        close={close}
        act={() => cancel.mutate({ preview: p.id }, { onSuccess: close })}
        word="Stop working on it"
        danger
        busy={cancel.isPending}
        error={cancel.error}
        line={commandLine('preview', 'cancel', p.id)}
      >
        <Stack>
          <Text size="sm">{many(p.counts?.waiting ?? 0, 'node')} will not be compiled for.</Text>
        </Stack>
      </ActDialog>
    </>
  );
}
