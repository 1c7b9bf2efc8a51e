import { useState } from 'react';
import type { GroupExplanation, GroupFinding, GroupMembership, GroupOrigin } from '../../api/client';
import { useAsk } from '../../data/query';
import { groupAddress, Link, nodeAddress, useSearch } from '../../routes/router';
import { Button, Checkbox, Group, Table, Text, TextInput } from '../../ui/kit';
import { Coming, CommandLine, Empty, Failure, State } from '../../ui/parts';
import { commandLine, many, visible } from '../../ui/words';

/** What groups give one node, which of them gave what, and why. */
export default function Explain() {
  const [search, change] = useSearch();
  const node = search.node ?? '';
  const [name, setName] = useState(node);
  const [applied, setApplied] = useState(node);
  if (applied !== node) {
    // Back and forward change the node, too.
    setApplied(node);
    setName(node);
  }
  return (
    <>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          change({ node: name.trim() }, false);
        }}
      >
        <Group gap="xs" align="flex-end" className="filters">
          <TextInput
            data-filter
            label="Node"
            placeholder="web-1.example.test"
            style={{ flex: '1 1 240px' }}
            value={name}
            onChange={(e) => setName(e.currentTarget.value)}
          />
          <Button type="submit" variant="default">
            Explain
          </Button>
        </Group>
      </form>
      {node ? (
        <ExplainNode name={node} />
      ) : (
        <Empty title="Which node?">
          <Text size="sm">
            Give the name of a node: the page shows its groups with the conditions that matched, and where each value
            comes from.
          </Text>
        </Empty>
      )}
    </>
  );
}

/** The explanation of one node; search.all shows the groups that it is not in, too. */
export function ExplainNode({ name }: { name: string }) {
  const [search, change] = useSearch();
  const asked = useAsk('group.explain', { name });
  const all = search.all === 'yes';
  const e = asked.data;
  return (
    <>
      {asked.error && <Failure error={asked.error} again={() => void asked.refetch()} />}
      {!e && !asked.error && <Coming />}
      {e && (
        // What scrolls must be reachable by keyboard.
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <section className="page-scroll" aria-label={`What groups give ${name}`} tabIndex={0}>
          <Head e={e} />
          <Conflicts e={e} />
          <h2 className="part">Groups</h2>
          <Checkbox
            label="Show the groups that it is not in, too"
            checked={all}
            onChange={(event) => change({ all: event.currentTarget.checked ? 'yes' : '' })}
          />
          <Memberships groups={(e.groups ?? []).filter((m) => all || m.member)} />
          <h2 className="part">Where each value comes from</h2>
          <Origins origins={e.origins ?? []} />
        </section>
      )}
      <CommandLine line={commandLine('group', 'explain', name, all && '--all')} />
    </>
  );
}

function Head({ e }: { e: GroupExplanation }) {
  const inside = (e.groups ?? []).filter((m) => m.member).length;
  return (
    <Text size="sm" component="div">
      <Link to={nodeAddress(e.node)}>{visible(e.node)}</Link> is in {many(inside, 'group')}.{' '}
      {e.environment ? `They give it the environment ${e.environment}.` : 'None of them gives it an environment.'}
      {!e.facts_known && ' No facts of it are known: rules over facts do not match.'}
      {!e.trusted_known && ' It has no certificate: rules over trusted data do not match.'}
    </Text>
  );
}

/** What a thing that groups give is called. */
function thing({ kind, class: of, name }: { kind: string; class?: string; name?: string }): string {
  switch (kind) {
    case 'class':
      return `class ${of}`;
    case 'parameter':
      return `${of}::${name}`;
    case 'data':
      return `data ${of}::${name}`;
    case 'variable':
      return `$${name}`;
  }
  return kind;
}

const valueOf = (o: GroupOrigin) => (o.kind === 'class' ? '' : JSON.stringify(o.value));

function Conflicts({ e }: { e: GroupExplanation }) {
  const conflicts = e.conflicts ?? [];
  if (conflicts.length === 0) return null;
  return (
    <section className="card bad-card" aria-label="Conflicts">
      <State of="conflicting">groups disagree: the node gets no catalog</State>
      <ul className="values">
        {conflicts.map((c) => (
          <li key={thing(c)}>
            <span className="mono">{visible(thing(c))}</span>:{' '}
            {(c.origins ?? []).map((o, i) => (
              <span key={o.group_id}>
                {i > 0 && ' and '}
                <span className="mono">{visible(valueOf(o))}</span> from{' '}
                <Link to={groupAddress(o.group)}>{visible(o.group)}</Link>
              </span>
            ))}
          </li>
        ))}
      </ul>
      <Text size="sm">Let one of the groups be below the other, or give the same value.</Text>
    </section>
  );
}

function standing(m: GroupMembership): { state: string; text: string } {
  if (m.pinned) return { state: 'member', text: 'in, pinned' };
  if (m.member) return { state: 'member', text: 'in' };
  return { state: 'apart', text: m.stopped_by ? 'not in' : 'passes through' };
}

const found = (f: GroupFinding) =>
  f.found === undefined ? 'there is no such value' : `it is ${JSON.stringify(f.found)}`;

/** The conditions that decided, in words. */
function why(m: GroupMembership): string {
  if (m.defect) return `cannot be used: ${m.defect}`;
  if (m.stopped_by && m.stopped_by !== m.name) return `not in ${m.stopped_by}`;
  return (m.why ?? [])
    .map((f) => (f.holds && m.member ? f.condition : `${f.condition}: ${f.holds ? 'yes' : 'no'}, ${found(f)}`))
    .join('; ');
}

function Memberships({ groups }: { groups: GroupMembership[] }) {
  return (
    <Table aria-label="Groups of the node" mt="xs" className="words">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Group</Table.Th>
          <Table.Th>Node</Table.Th>
          <Table.Th>Why</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {groups.map((m) => {
          const { state, text } = standing(m);
          return (
            <Table.Tr key={m.id}>
              <Table.Td style={{ paddingLeft: 10 + m.depth * 16 }}>
                <Link to={groupAddress(m.name)}>{visible(m.name)}</Link>
              </Table.Td>
              <Table.Td>
                <State of={state}>{text}</State>
              </Table.Td>
              <Table.Td className="mono">{visible(why(m))}</Table.Td>
            </Table.Tr>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}

function Origins({ origins }: { origins: GroupOrigin[] }) {
  if (origins.length === 0) {
    return <Text size="sm">Its groups give it no class and no value.</Text>;
  }
  return (
    <Table aria-label="Values of the node" mt="xs" className="words">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>What</Table.Th>
          <Table.Th>Value</Table.Th>
          <Table.Th>From group</Table.Th>
          <Table.Th>State</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {origins.map((o) => {
          const through = (o.via ?? []).filter((name) => name !== o.group);
          return (
            <Table.Tr key={`${thing(o)} ${o.group_id} ${o.state}`}>
              <Table.Td className="mono">{visible(thing(o))}</Table.Td>
              <Table.Td className="mono">{visible(valueOf(o))}</Table.Td>
              <Table.Td>
                <Link to={groupAddress(o.group)}>{visible(o.group)}</Link>
                {through.length > 0 && ` through ${visible(through.join(', '))}`}
              </Table.Td>
              <Table.Td>
                <State of={o.state} />
              </Table.Td>
            </Table.Tr>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}
