import { useEffect, useState, type ReactNode } from 'react';
import type { Refusal, ReleaseReport } from '../../api/client';
import { useAct } from '../../data/query';
import { useGo } from '../../routes/router';
import { Text, TextInput } from '../../ui/kit';
import { ActDialog, Coming } from '../../ui/parts';
import { commandLine, count, flags, many } from '../../ui/words';
import { useSure } from '../order/sure';
import { signOf } from './Difference';
import { subjectOf } from './kinds';
import { atOnce, flagsOf, isWhole, optionsOf, Plan, takenBy, WavesForm, type Going } from './waves';

/** Asks what would happen, some time after the last change of the form: the answer is shown before the act. */
function usePlan(wanted: string, whole: boolean, ask: (wanted: string) => void) {
  useEffect(() => {
    if (!whole) return;
    const timer = setTimeout(() => ask(wanted), 400);
    return () => clearTimeout(timer);
  }, [wanted, whole, ask]);
}

function Frame(props: {
  title: string;
  word: string;
  close: () => void;
  act: () => void;
  busy: boolean;
  error: Refusal | null;
  line: string;
  plan?: ReleaseReport;
  current: boolean; // the plan is that of the form
  children: ReactNode;
}) {
  const nodes = props.plan ? takenBy(props.plan) : 0;
  const { sure, field } = useSure(nodes);
  return (
    <ActDialog
      title={props.title}
      opened
      close={props.close}
      act={props.act}
      word={props.plan ? `${props.word} ${many(nodes, 'node')}` : props.word}
      busy={props.busy}
      error={props.error}
      blocked={!props.current || nodes === 0 || !sure}
      line={props.line}
    >
      {props.children}
      {props.plan ? <Plan plan={props.plan} /> : !props.error && <Coming lines={2} />}
      {field}
    </ActDialog>
  );
}

/** Releases the catalogs of a preview, in waves. */
export function ReleaseDialog({ preview, close }: { preview: string; close: () => void }) {
  const go = useGo();
  const [going, setGoing] = useState<Going>(atOnce);
  const [where, setWhere] = useState('');
  const ask = useAct('release.create');
  const make = useAct('release.create', ['release.list', 'preview.show']);
  const request = {
    preview: Number(preview),
    ...optionsOf(going),
    ...(where ? { targets: { query: where } } : {}),
  };
  const { mutate } = ask;
  const [asks] = useState(() => (wanted: string) => mutate({ ...JSON.parse(wanted), dry_run: true }));
  const wanted = JSON.stringify({ ...request, description: undefined });
  usePlan(wanted, isWhole(going), asks);
  const current = ask.isSuccess && JSON.stringify({ ...ask.variables, dry_run: undefined }) === wanted;
  return (
    <Frame
      title={`Release preview ${preview}`}
      word="Release to"
      close={close}
      act={() => make.mutate(request, { onSuccess: (made) => go(`/releases/${made.id}`) })}
      busy={make.isPending}
      error={make.error ?? ask.error}
      line={commandLine('release', 'create', '--preview', preview, ...flags({ where }), ...flagsOf(going))}
      plan={ask.data}
      current={current}
    >
      <Text size="sm">
        The catalogs of the preview are given to its nodes as they are; nothing is compiled again. Then Puppet runs on
        them.
      </Text>
      <TextInput
        label="Which of its nodes"
        description="A condition of PQL; empty: all that change"
        value={where}
        onChange={(e) => setWhere(e.currentTarget.value)}
      />
      <WavesForm going={going} set={(change) => setGoing({ ...going, ...change })} />
    </Frame>
  );
}

/** Gives the nodes of a release back what they had before it. */
export function RollbackDialog({ release, close }: { release: string; close: () => void }) {
  const go = useGo();
  const [going, setGoing] = useState<Going>(atOnce);
  const ask = useAct('release.rollback');
  const make = useAct('release.rollback', ['release.list']);
  const request = { release: Number(release), ...optionsOf(going) };
  const { mutate } = ask;
  const [asks] = useState(() => (wanted: string) => mutate({ ...JSON.parse(wanted), dry_run: true }));
  const wanted = JSON.stringify({ ...request, description: undefined });
  usePlan(wanted, isWhole(going), asks);
  const current = ask.isSuccess && JSON.stringify({ ...ask.variables, dry_run: undefined }) === wanted;
  const plan = ask.data;
  const groups = plan?.difference?.groups ?? [];
  return (
    <Frame
      title={`Roll back release ${release}`}
      word="Roll back"
      close={close}
      act={() => make.mutate(request, { onSuccess: (made) => go(`/releases/${made.id}`) })}
      busy={make.isPending}
      error={make.error ?? ask.error}
      line={commandLine('rollback', '--release', release, ...flagsOf(going))}
      plan={plan}
      current={current}
    >
      <Text size="sm">
        Nodes that have its catalogs get those that they had before it. Nothing is compiled, so it begins at once.
      </Text>
      {groups.length > 0 && (
        <ul className="changes" aria-label="What changes">
          {groups.slice(0, 8).map((g) => (
            <li key={g.key}>
              <span className="mono">{signOf(g.change)}</span> {subjectOf(g)}{' '}
              <Text span size="sm" c="dimmed">
                {many(g.nodes, 'node')}
              </Text>
            </li>
          ))}
          {groups.length > 8 && <li>and {count(groups.length - 8)} more</li>}
        </ul>
      )}
      {(plan?.vanishing?.resources ?? 0) > 0 && (
        <Text size="sm" c="var(--warn)">
          {many(plan!.vanishing!.distinct, 'resource')} of {many(plan!.vanishing!.nodes, 'node')} vanish from the
          catalogs, and stay on the nodes as they are: a catalog cannot undo them.
        </Text>
      )}
      <WavesForm going={going} set={(change) => setGoing({ ...going, ...change })} />
    </Frame>
  );
}
