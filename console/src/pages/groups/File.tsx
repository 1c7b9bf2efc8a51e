import { useState } from 'react';
import type { Group as NodeGroup, GroupApplyResponse, GroupDifference } from '../../api/client';
import { useAct, useAsk } from '../../data/query';
import { useMay } from '../../data/session';
import { Group, Stack, Text } from '../../ui/kit';
import { ActButton, CommandLine, Failure, Lines, saveAs, State } from '../../ui/parts';
import { commandLine, many, visible } from '../../ui/words';
import { touched } from './Form';
import { exported, groupsIn, heldBack } from './spec';

/** All groups as a file: to be kept, and to be applied. */
export default function File() {
  const asked = useAsk('group.list', {});
  const may = useMay('group:write');
  const [text, setText] = useState('');
  const plan = useAct('group.apply');
  const apply = useAct('group.apply', [...touched]);
  const [shown, setShown] = useState<GroupApplyResponse>();
  const { groups, wrong } = groupsIn(text);
  const now = asked.data?.items ?? [];
  const defect = now.find((g) => g.defect);
  const held = defect
    ? `The group ${defect.name} cannot be used as it is stored: mend or delete it first.`
    : heldBack(now);
  const change = (next: string) => {
    setText(next);
    setShown(undefined); // what was shown is of another text
    apply.reset();
    plan.reset();
  };
  return (
    // What scrolls must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className="page-scroll" aria-label="Groups as a file" tabIndex={0}>
      <Stack gap="sm">
        <Text size="sm">
          A file describes all groups. Keep it beside the code, and apply it here or with the command line: groups that
          it does not describe are deleted, and nothing is changed before the difference was shown.
        </Text>
        <Group gap="xs">
          <ActButton
            may={asked.data !== undefined && !held}
            why={held}
            variant="default"
            onClick={() => saveAs('groups.json', `${textOf(now)}\n`, 'application/json')}
          >
            Save as groups.json
          </ActButton>
          <ActButton
            may={asked.data !== undefined && !held}
            why={held}
            variant="default"
            onClick={() => change(textOf(now))}
          >
            Begin with the groups of now
          </ActButton>
        </Group>
        {asked.error && <Failure error={asked.error} again={() => void asked.refetch()} />}
        <Lines
          label="What the groups are to be"
          description="JSON, as tutti group export -o json writes it"
          rows={[6, 18]}
          value={text}
          set={change}
        />
        {text && wrong && (
          <Text size="sm" className="many-bad" role="alert">
            {wrong}
          </Text>
        )}
        <Group gap="xs">
          <ActButton
            may={may.may && text !== '' && !wrong}
            why={may.why || (text ? wrong : 'There is nothing to apply yet.')}
            variant="default"
            loading={plan.isPending}
            onClick={() => plan.mutate({ groups, dry_run: true }, { onSuccess: setShown })}
          >
            Show what would change
          </ActButton>
          {shown && !shown.applied && (shown.changes ?? []).length > 0 && (
            <ActButton
              {...may}
              loading={apply.isPending}
              onClick={() => apply.mutate({ groups, revision: shown.revision }, { onSuccess: setShown })}
            >
              Apply
            </ActButton>
          )}
        </Group>
        {(plan.error ?? apply.error) && <Failure error={(plan.error ?? apply.error)!} />}
        {shown && <Changes of={shown} />}
        <CommandLine line={text ? 'tutti group apply -f groups.json' : commandLine('group', 'export', '-o', 'json')} />
      </Stack>
    </section>
  );
}

const textOf = (groups: NodeGroup[]) => JSON.stringify({ groups: groups.map(exported) }, null, 2);

const difference = (d: GroupDifference) =>
  visible(!d.old ? (d.new ?? '') : !d.new ? `${d.old} → (nothing)` : `${d.old} → ${d.new}`);

function Changes({ of }: { of: GroupApplyResponse }) {
  const changes = of.changes ?? [];
  if (changes.length === 0) return <Text size="sm">Nothing differs: the groups are so already.</Text>;
  return (
    <>
      <Text size="sm" component="output" fw={600}>
        {of.applied
          ? `Applied: ${many(changes.length, 'group')} changed.`
          : `${many(changes.length, 'group')} would change.`}
      </Text>
      <ul className="changes" aria-label="What changes">
        {changes.map((c) => (
          <li key={c.id || c.name} data-bad={c.kind === 'delete'}>
            <State of={c.kind} /> <b>{visible(c.name)}</b>
            {c.kind !== 'delete' && (
              <ul className="values">
                {(c.differences ?? []).map((d) => (
                  <li key={d.field} className="mono">
                    {visible(d.field)}: {difference(d)}
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
        {(of.warnings ?? []).map((w) => (
          <li key={w}>
            <State of="warning" /> {visible(w)}
          </li>
        ))}
      </ul>
    </>
  );
}
