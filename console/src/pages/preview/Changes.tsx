import { useMemo, useState } from 'react';
import type { PreviewRemark, PreviewReport } from '../../api/client';
import { useAct, useAsk } from '../../data/query';
import { useMay } from '../../data/session';
import { Link, useSearch } from '../../routes/router';
import { Button, Checkbox, Group, Text, TextInput } from '../../ui/kit';
import { ActButton, ActDialog, Coming, Empty, Failure, Place, State, Time } from '../../ui/parts';
import { commandLine, count, many, visible } from '../../ui/words';
import { CodeAt } from '../change/CodeAt';
import { Differing, signOf } from '../change/Difference';
import { kindsOf, subjectOf, type Kind } from '../change/kinds';

/** The changes of a preview, what does not compile first, then the largest; each can be opened, and acknowledged. */
export default function Changes({ id, p }: { id: string; p: PreviewReport }) {
  const [search, change] = useSearch();
  const [pages, setPages] = useState(['']);
  const hidden = (p.hidden ?? []).reduce((n, h) => n + h.changes, 0);
  return (
    <>
      <Group gap="md">
        <Checkbox
          size="xs"
          label={`Noise${hidden > 0 ? ` (${count(hidden)} hidden by ${p.hidden!.map((h) => h.rule).join(', ')})` : ''}`}
          checked={Boolean(search.noise)}
          onChange={(e) => change({ noise: e.currentTarget.checked ? 'yes' : '' })}
        />
        <Checkbox
          size="xs"
          label="Changes in order only"
          checked={Boolean(search.order)}
          onChange={(e) => change({ order: e.currentTarget.checked ? 'yes' : '' })}
        />
      </Group>
      <div className="page-scroll">
        <Remarks of={p.remarks} />
        {pages.map((after, i) => (
          <Part
            key={after}
            id={id}
            after={after}
            only={pages.length === 1}
            state={p.state}
            more={
              i === pages.length - 1
                ? (next) => setPages((before) => (before.includes(next) ? before : [...before, next]))
                : undefined
            }
          />
        ))}
      </div>
    </>
  );
}

type Code = Pick<PreviewReport, 'id' | 'state' | 'environment' | 'version'>;

function Part(props: { id: string; after: string; only: boolean; state: string; more?: (next: string) => void }) {
  const [search, change] = useSearch();
  const show = useAsk('preview.show', { preview: props.id, after: props.after || undefined, limit: 200 });
  const all = show.data?.changes;
  const kinds = useMemo(
    () =>
      kindsOf(all ?? []).filter(
        (k) => (search.order || !k.first.order_only) && (search.noise || k.changes.some((c) => !c.noise)),
      ),
    [all, search.noise, search.order],
  );
  if (show.error) return <Failure error={show.error} again={() => void show.refetch()} />;
  if (!show.data) return <Coming />;
  if (kinds.length === 0 && props.only) {
    return (all ?? []).length > 0 ? (
      <Empty title="Nothing but what is hidden changes">
        <button type="button" className="as-link" onClick={() => change({ noise: 'yes', order: 'yes' })}>
          Show all
        </button>
      </Empty>
    ) : (
      <Empty title={props.state === 'compiling' ? 'No change was found yet' : 'Nothing changes'}>
        <Text size="sm">
          {props.state === 'compiling'
            ? 'Changes are shown as they are found.'
            : 'Every node would have the catalog that it has.'}
        </Text>
      </Empty>
    );
  }
  const next = show.data.next;
  return (
    <>
      <ul className="changes" aria-label="Changes">
        {kinds.map((k) => (
          <OneKind key={k.key} p={show.data} kind={k} />
        ))}
      </ul>
      {next && props.more && (
        <Button size="xs" variant="default" onClick={() => props.more!(next)}>
          More changes
        </Button>
      )}
    </>
  );
}

function OneKind({ p, kind }: { p: Code; kind: Kind }) {
  const id = p.id;
  const ready = p.state === 'ready';
  const [open, setOpen] = useState(false);
  const [asked, setAsked] = useState(false);
  const [text, setText] = useState('');
  const say = useAct('preview.say', ['preview.show', 'policy.test']);
  const may = useMay('preview:create');
  const c = kind.first;
  const acked = kind.changes.every((one) => one.acknowledged);
  const bad = c.change === 'error' || c.change.startsWith('lost');
  const name = visible(subjectOf(c));
  const close = () => {
    setAsked(false);
    setText('');
  };
  return (
    <li data-bad={bad} data-acked={acked}>
      <div className="change">
        <button type="button" className="as-link" aria-expanded={open} onClick={() => setOpen(!open)}>
          <span className="mono">{signOf(c.change)}</span> {name}
        </button>
        <Group gap="xs" wrap="nowrap">
          <Text size="sm" className="count">
            <Link to={`/previews/${id}`} search={{ view: 'nodes', change: kind.keys.join(',') }}>
              {many(kind.nodes, 'node')}
            </Link>
          </Text>
          <ActButton
            {...may}
            variant="default"
            size="compact-xs"
            disabled={!ready}
            aria-label={`${acked ? 'Withdraw…' : 'Ack…'} ${name}`}
            onClick={() => setAsked(true)}
          >
            {acked ? 'Withdraw…' : 'Ack…'}
          </ActButton>
        </Group>
      </div>
      <Group gap="4px 12px" fz="sm">
        {acked && <State of="succeeded">acknowledged by {c.acknowledged}</State>}
        {kind.changes.length > 1 && <span>{many(kind.changes.length, 'variant')}</span>}
        {c.change === 'removed' && <span>stays on the nodes as it is</span>}
        {c.noise && <span>noise: {c.noise}</span>}
        {c.order_only && <span>order only</span>}
        {(c.engine_noise ?? []).length > 0 && <span>noise of the engine: {c.engine_noise!.join(', ')}</span>}
        {c.file && <Place file={c.file} line={c.line} />}
      </Group>
      <Remarks of={kind.changes.flatMap((one) => one.remarks ?? [])} />
      {open &&
        kind.changes.map((one) => (
          <div key={one.key} className="card">
            <Text size="sm">
              {many(one.nodes, 'node')}: {(one.examples ?? []).join(', ')}
              {one.nodes > (one.examples ?? []).length && ' …'}
            </Text>
            {one.example && <Differing resource={one.example} />}
            {bad && one.file && (
              <CodeAt environment={p.environment} version={p.version} file={one.file} line={one.line} opened />
            )}
            {!one.example && one.message && <pre className="output">{visible(one.message)}</pre>}
          </div>
        ))}
      <ActDialog
        title={acked ? 'Withdraw the yes' : 'Acknowledge'}
        opened={asked}
        close={close}
        act={() =>
          say.mutate(
            {
              preview: id,
              kind: acked ? 'withdrawn' : 'acknowledged',
              changes: kind.keys,
              text: text || undefined,
            },
            { onSuccess: close },
          )
        }
        word={acked ? 'Withdraw' : 'Acknowledge'}
        busy={say.isPending}
        error={say.error}
        line={commandLine('preview', 'ack', id, ...kind.keys, acked && '--withdraw', text && '--text', text)}
      >
        <Text size="sm">
          {name}, {many(kind.nodes, 'node')}
        </Text>
        <TextInput label="Why" value={text} onChange={(e) => setText(e.currentTarget.value)} />
      </ActDialog>
    </li>
  );
}

function Remarks({ of }: { of: PreviewRemark[] | null }) {
  return (
    <>
      {(of ?? [])
        .filter((r) => r.text)
        .map((r, i) => (
          <Text size="sm" key={i} className="remark">
            {r.author} <Time at={r.at} />: {visible(r.text!)}
          </Text>
        ))}
    </>
  );
}
