import { useState } from 'react';
import type { Group as NodeGroup } from '../../api/client';
import { useAct, useAsk } from '../../data/query';
import { mayDo, useSession } from '../../data/session';
import { groupAddress, useGo } from '../../routes/router';
import { Choice } from '../../ui/filters';
import { ActionIcon, Button, Checkbox, Group, Stack, Text, TextInput } from '../../ui/kit';
import { ActDialog, Lines } from '../../ui/parts';
import { commandLine, listed } from '../../ui/words';
import { amiss, below, blank, draftOf, flagsBetween, isRoot, specOf, type Draft, type Pair } from './spec';

/** What is asked again when groups changed. */
export const touched = [
  'group.list',
  'group.show',
  'group.nodes',
  'group.explain',
  'node.list',
  'node.summary',
] as const;

/** The form of a group: a new one, or one that is there. */
export function GroupForm(props: { g?: NodeGroup; groups: NodeGroup[]; parent?: string; close: () => void }) {
  const { groups, close } = props;
  const go = useGo();
  const [g] = useState(props.g); // as it was when the form was opened: the page asks for it anew behind the form
  const [before] = useState<Draft>(() => (g ? draftOf(g) : blank));
  const [draft, setDraft] = useState<Draft>(() => ({ ...before, parent: before.parent || (props.parent ?? '') }));
  // What is typed stays as it is typed: lists are made of it when they are sent.
  const [nodes, setNodes] = useState(before.nodes.join('\n'));
  const [classes, setClasses] = useState(before.classes.join('\n'));
  const create = useAct('group.create', [...touched]);
  const edit = useAct('group.edit', [...touched]);
  const set = (change: Partial<Draft>) => setDraft((d) => ({ ...d, ...change }));
  const root = g !== undefined && isRoot(g);
  const left = g ? new Set([g.id, ...below(groups, g.id).map((one) => one.id)]) : new Set<string>();
  const asked = { ...draft, name: draft.name.trim(), nodes: listed(nodes), classes: listed(classes) };
  const wrong = amiss(asked);
  const same = g !== undefined && flagsBetween(before, asked).length === 0;
  const act = () => {
    const spec = specOf(asked, g);
    const done = (saved: NodeGroup) => {
      close();
      if (saved.name !== g?.name) go(groupAddress(saved.name), {}, g !== undefined);
    };
    if (g) edit.mutate({ 'path.group': g.id, group: spec, revision: g.revision }, { onSuccess: done });
    else create.mutate({ group: spec }, { onSuccess: done });
  };
  return (
    <ActDialog
      title={g ? `Change ${g.name}` : 'New group'}
      opened
      wide
      close={close}
      act={act}
      word={g ? 'Change' : 'Make'}
      busy={create.isPending || edit.isPending}
      error={create.error ?? edit.error}
      blocked={!asked.name || wrong !== '' || same}
      line={
        g
          ? commandLine('group', 'edit', g.name, ...flagsBetween(before, asked))
          : commandLine('group', 'create', asked.name || 'NAME', ...flagsBetween(before, asked))
      }
    >
      {!root && (
        <>
          <TextInput label="Name" required value={draft.name} onChange={(e) => set({ name: e.currentTarget.value })} />
          <Choice
            label="Below"
            any="Below All Nodes"
            placeholder="All Nodes"
            data={groups.filter((one) => !left.has(one.id)).map((one) => one.name)}
            value={draft.parent}
            set={(parent) => set({ parent })}
          />
        </>
      )}
      <TextInput
        label="What it is for"
        value={draft.description}
        onChange={(e) => set({ description: e.currentTarget.value })}
      />
      {!root && (
        <>
          <Lines
            label="Rule"
            description={
              'Which nodes: facts.os.family = "Debian" and not name ~ "^db". Empty: only those that are pinned'
            }
            rows={[2, 10]}
            value={draft.rule}
            set={(text) => set({ rule: text })}
          />
          <Lines
            label="Pinned nodes"
            description="In the group whatever the rule says; one a line"
            rows={[1, 8]}
            value={nodes}
            set={setNodes}
          />
        </>
      )}
      <Environment value={draft.environment} set={(environment) => set({ environment })} />
      <Checkbox
        label="The environment outvotes those of other groups"
        checked={draft.decides}
        onChange={(e) => set({ decides: e.currentTarget.checked })}
      />
      <Lines label="Classes" description="One a line" rows={[1, 8]} value={classes} set={setClasses} />
      <Pairs
        title="Parameters of these classes"
        add="Add a parameter"
        name="Class and parameter"
        like="apache::port"
        rows={draft.parameters}
        set={(parameters) => set({ parameters })}
      />
      <Pairs
        title="Variables at top scope"
        add="Add a variable"
        name="Variable"
        like="tier"
        rows={draft.variables}
        set={(variables) => set({ variables })}
      />
      <Pairs
        title="Data for classes, wherever they are included"
        add="Add data"
        name="Class and parameter of data"
        like="ssh::server::port"
        rows={draft.data}
        set={(data) => set({ data })}
      />
      {wrong && (
        <Text size="sm" className="many-bad" role="alert">
          {wrong}
        </Text>
      )}
    </ActDialog>
  );
}

function Environment({ value, set }: { value: string; set: (environment: string) => void }) {
  const { session } = useSession();
  const list = useAsk('environment.list', {}, { enabled: mayDo(session, 'code:read') });
  return (
    <>
      <TextInput
        label="Environment"
        description="agent-specified: the one that the node asks for; empty: what the group above says"
        list="environments"
        value={value}
        onChange={(e) => set(e.currentTarget.value.trim())}
      />
      <datalist id="environments">
        {['agent-specified', ...(list.data?.items ?? []).map((v) => v.environment)].map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </datalist>
    </>
  );
}

/** Names and values; a value is JSON, or else a text. */
function Pairs(props: {
  title: string;
  add: string;
  name: string;
  like: string;
  rows: Pair[];
  set: (rows: Pair[]) => void;
}) {
  const { rows, set } = props;
  const change = (at: number, part: Partial<Pair>) => set(rows.map((r, i) => (i === at ? { ...r, ...part } : r)));
  return (
    <fieldset className="plain-set">
      <legend>{props.title}</legend>
      <Stack gap={6}>
        {rows.map((r, i) => (
          // Rows have no other name than their place.
          // oxlint-disable-next-line react/no-array-index-key
          <Group key={i} gap={6} wrap="nowrap" align="flex-start">
            <TextInput
              aria-label={props.name}
              placeholder={props.like}
              style={{ flex: 3, minWidth: 0 }}
              classNames={{ input: 'mono' }}
              value={r.name}
              onChange={(e) => change(i, { name: e.currentTarget.value.trim() })}
            />
            <Lines
              aria-label={`Value of ${r.name || props.name}`}
              placeholder="text or JSON"
              rows={[1, 6]}
              style={{ flex: 4, minWidth: 0 }}
              value={r.value}
              set={(text) => change(i, { value: text })}
            />
            <ActionIcon
              variant="default"
              size={36}
              aria-label={`Remove ${r.name || props.name}`}
              onClick={() => set(rows.filter((_, at) => at !== i))}
            >
              ×
            </ActionIcon>
          </Group>
        ))}
        <div>
          <Button size="compact-xs" variant="default" onClick={() => set([...rows, { name: '', value: '' }])}>
            {props.add}
          </Button>
        </div>
      </Stack>
    </fieldset>
  );
}
