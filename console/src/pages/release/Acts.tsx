import { useState } from 'react';
import type { Refusal, ReleaseReport } from '../../api/client';
import { useAct } from '../../data/query';
import { useMay } from '../../data/session';
import { useGo } from '../../routes/router';
import { Checkbox, Text, TextInput, useDisclosure } from '../../ui/kit';
import { ActButton, ActDialog } from '../../ui/parts';
import { commandLine, many, visible } from '../../ui/words';
import { RollbackDialog } from '../change/ReleaseDialog';

/** Whether a release has ended. */
export function isOver(r: Pick<ReleaseReport, 'state'>): boolean {
  return ['done', 'done_with_failures', 'aborted'].includes(r.state);
}

type Asked = 'pause' | 'resume' | 'promote' | 'abort' | 'approve' | 'refresh';

/** What can be done to a release now. Two people may act: the server tells the second. */
export function Acts({ r }: { r: ReleaseReport }) {
  const [asked, setAsked] = useState<Asked>();
  const [rolls, rolling] = useDisclosure();
  const control = useMay('release:control');
  const approves = useMay('release:approve');
  const makes = useMay('release:create');
  const ended = isOver(r);
  const superseded = r.counts?.superseded ?? 0;
  const overBudget = r.hold === 'budget';
  const buttons: { asks: Asked; text: string; when: boolean; may: typeof control; main?: boolean }[] = [
    { asks: 'abort', text: 'Abort…', when: !ended && r.state !== 'stopping', may: control },
    { asks: 'pause', text: 'Pause…', when: r.state === 'running', may: control },
    { asks: 'refresh', text: 'Preview again…', when: superseded > 0, may: makes },
    { asks: 'approve', text: 'Approve…', when: r.state === 'waiting_approval', may: approves, main: true },
    { asks: 'promote', text: 'Next wave…', when: r.hold === 'promotion', may: control, main: true },
    {
      asks: 'resume',
      text: 'Go on…',
      when: r.state === 'paused' && r.hold !== 'promotion',
      may: control,
      main: true,
    },
  ];
  return (
    <>
      {buttons
        .filter((b) => b.when)
        .map((b) => (
          <ActButton key={b.asks} {...b.may} variant={b.main ? undefined : 'default'} onClick={() => setAsked(b.asks)}>
            {b.text}
          </ActButton>
        ))}
      {ended && (
        <ActButton {...makes} variant="default" onClick={rolling.open}>
          Roll back…
        </ActButton>
      )}
      {rolls && <RollbackDialog release={r.id ?? ''} close={rolling.close} />}
      {asked && <Ask key={asked} r={r} asked={asked} overBudget={overBudget} close={() => setAsked(undefined)} />}
    </>
  );
}

function Ask(props: { r: ReleaseReport; asked: Asked; overBudget: boolean; close: () => void }) {
  const { r, asked, close } = props;
  const id = r.id ?? '';
  const go = useGo();
  const [why, setWhy] = useState('');
  const [kill, setKill] = useState(false);
  const [budget, setBudget] = useState(props.overBudget ? String(r.failures) : '');
  const touched = ['release.show', 'release.targets', 'release.list'] as const;
  const acts = {
    pause: useAct('release.pause', [...touched]),
    resume: useAct('release.resume', [...touched]),
    promote: useAct('release.promote', [...touched]),
    abort: useAct('release.abort', [...touched]),
    approve: useAct('release.approve', [...touched]),
    refresh: useAct('release.refresh', ['preview.list']),
  };
  const next = r.waves?.find((w) => w.number === r.wave + 1);
  const atWork = (r.counts?.sent ?? 0) + (r.counts?.applying ?? 0);
  const waiting = r.counts?.waiting ?? 0;
  const forms = {
    pause: {
      title: `Pause release ${id}`,
      word: 'Pause',
      text: `${many(atWork, 'node')} at work will go on to the end; ${many(waiting, 'node')} will not begin.`,
    },
    resume: { title: `Let release ${id} go on`, word: 'Go on', text: r.reason ? visible(r.reason) : '' },
    promote: {
      title: `Let the next wave of release ${id} begin`,
      word: next ? `Begin wave ${next.number}, ${many(next.nodes, 'node')}` : 'Begin',
      text: next
        ? `Wave ${next.number} (${next.size}) is given its catalogs, and Puppet runs on ${many(next.nodes, 'node')}.`
        : 'There is no wave behind this one.',
    },
    abort: {
      title: `Abort release ${id}`,
      word: 'Abort',
      text: `${many(waiting, 'node')} will not begin. Nodes that were run keep the catalogs that they were given; a roll back gives back what they had.`,
    },
    approve: {
      title: `Approve release ${id}`,
      word: 'Approve',
      text: `Exactly these catalogs, for ${many(r.nodes, 'node')} in ${many((r.waves ?? []).length, 'wave')}. Any change makes the approval void.`,
    },
    refresh: {
      title: 'Preview the superseded nodes again',
      word: 'Preview',
      text: `${many(r.counts?.superseded ?? 0, 'node')} have other catalogs or other facts than the preview saw.`,
    },
  };
  const form = forms[asked];
  const hasWhy = asked === 'pause' || asked === 'abort' || asked === 'approve';
  const done = { onSuccess: close };
  const act = () => {
    const said = why || undefined;
    if (asked === 'pause') acts.pause.mutate({ release: id, why: said }, done);
    else if (asked === 'approve') acts.approve.mutate({ release: id, why: said }, done);
    else if (asked === 'promote') acts.promote.mutate({ release: id }, done);
    else if (asked === 'abort') acts.abort.mutate({ release: id, why: said, kill: kill || undefined }, done);
    else if (asked === 'refresh')
      acts.refresh.mutate({ release: id }, { onSuccess: (made) => go(`/previews/${made.preview}`) });
    else acts.resume.mutate({ release: id, max_failures: budget === '' ? undefined : Number(budget) }, done);
  };
  const error: Refusal | null = acts[asked].error;
  const bad = asked === 'resume' && !/^\d*$/.test(budget);
  return (
    <ActDialog
      title={form.title}
      opened
      close={close}
      act={act}
      word={form.word}
      danger={asked === 'abort'}
      busy={acts[asked].isPending}
      error={error}
      blocked={bad}
      line={commandLine(
        'release',
        asked,
        id,
        asked === 'abort' && kill && '--kill',
        hasWhy && why && '--why',
        hasWhy && why,
        asked === 'resume' && budget && '--max-failures',
        asked === 'resume' && budget,
      )}
    >
      <Text size="sm">{form.text}</Text>
      {asked === 'abort' && atWork > 0 && (
        <Checkbox
          label={`Also end what runs now on ${many(atWork, 'node')}`}
          checked={kill}
          onChange={(e) => setKill(e.currentTarget.checked)}
        />
      )}
      {asked === 'resume' && (
        <TextInput
          label="How many nodes may fail in all"
          description={
            props.overBudget ? `${r.failures} failed so far; a larger number lets it go on` : 'Empty: as it is'
          }
          error={bad ? 'a number of nodes' : undefined}
          inputMode="numeric"
          value={budget}
          onChange={(e) => setBudget(e.currentTarget.value.trim())}
        />
      )}
      {hasWhy && <TextInput label="Why" value={why} onChange={(e) => setWhy(e.currentTarget.value)} />}
    </ActDialog>
  );
}
