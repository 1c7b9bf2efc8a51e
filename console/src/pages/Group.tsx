import { useState } from 'react';
import type { Group as NodeGroup, GroupNode } from '../api/client';
import { useAct, useAsk, useList } from '../data/query';
import { mayDo, useMay, useSession } from '../data/session';
import { groupAddress, Link, nodeAddress, useGo, usePart, useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Group, SegmentedControl, Text, useDisclosure } from '../ui/kit';
import { ActButton, ActDialog, Coming, CommandLine, Empty, Failure, Lines, Page, State, Time } from '../ui/parts';
import { commandLine, listed, many, visible } from '../ui/words';
import { Crumbs } from './Crumbs';
import { GroupForm, touched } from './groups/Form';
import { draftOf, heldBack, isRoot, specOf, typed } from './groups/spec';
import { environmentOf } from './groups/Tree';
import { ListOf } from './ListOf';
import { RunButton } from './RunDialog';

/** One group: what it matches and gives, and the nodes that are in it. Another group is another page. */
export function GroupPage() {
  const name = usePart('group');
  return <OneGroup key={name} name={name} />;
}

function OneGroup({ name }: { name: string }) {
  const [search, change] = useSearch();
  const { session } = useSession();
  const asked = useAsk('group.show', { group: name });
  const all = useAsk('group.list', {});
  const counts = useAsk('node.summary', { group: name }, { enabled: mayDo(session, 'node:read') });
  const nodes = counts.error ? undefined : counts.data?.nodes; // an old number would pass for the one of now
  const members = search.view === 'nodes';
  const g = asked.data;
  const groups = all.data?.items ?? undefined; // undefined: they are not known
  if (asked.error && !g) {
    return (
      <Page name={name} title={visible(name)} above={<Above>{visible(name)}</Above>}>
        <Failure error={asked.error} again={() => void asked.refetch()} />
      </Page>
    );
  }
  return (
    <Page
      name={g?.name ?? name}
      title={visible(g?.name ?? name)}
      above={<Above>{visible(g?.name ?? name)}</Above>}
      actions={g && <Acts g={g} groups={groups} nodes={nodes} />}
    >
      {asked.error && <Failure error={asked.error} again={() => void asked.refetch()} />}
      {all.error && <Failure error={all.error} again={() => void all.refetch()} />}
      {!g && <Coming />}
      {g && (
        <>
          <Standing g={g} nodes={nodes} />
          <SegmentedControl
            aria-label="What is shown"
            size="xs"
            style={{ alignSelf: 'flex-start' }}
            data={[
              { value: 'gives', label: 'What it gives' },
              { value: 'nodes', label: 'Nodes' },
            ]}
            value={members ? 'nodes' : 'gives'}
            onChange={(v) => change({ view: v === 'nodes' ? v : '' }, false)}
          />
          {members ? <Members g={g} /> : <Gives g={g} groups={groups} />}
          <CommandLine line={commandLine('group', 'show', g.name, members && '--nodes')} />
        </>
      )}
    </Page>
  );
}

function Above({ children }: { children: string }) {
  return (
    <Crumbs to="/groups" of="Groups">
      {children}
    </Crumbs>
  );
}

/** What people should know first: what is wrong with it. */
function Standing({ g, nodes }: { g: NodeGroup; nodes?: number }) {
  return (
    <>
      {g.defect && (
        <section className="card bad-card" aria-label="Why it matches no node">
          <State of="failed">cannot be used</State>{' '}
          <Text size="sm" span>
            {visible(g.defect)}. It and the groups below it match no node until that is mended.
          </Text>
        </section>
      )}
      {(g.warnings ?? []).length > 0 && (
        <ul className="changes" aria-label="Warnings">
          {g.warnings!.map((w) => (
            <li key={w}>
              <State of="warning" /> {visible(w)}
            </li>
          ))}
        </ul>
      )}
      <Group gap="4px 16px" fz="sm">
        {nodes !== undefined && (
          <Link to="/nodes" search={{ group: g.name }}>
            {many(nodes, 'node')}
          </Link>
        )}
        {!isRoot(g) && (
          <span>
            below <Link to={groupAddress(g.parent)}>{visible(g.parent)}</Link>
          </span>
        )}
        <span>
          changed <Time at={g.changed_at} />
          {g.changed_by && ` by ${g.changed_by}`}, revision {g.revision}
        </span>
      </Group>
    </>
  );
}

const nothing = (
  <Text size="sm" c="dimmed" span>
    none
  </Text>
);

function Values({ of, prefix = '' }: { of?: Record<string, unknown>; prefix?: string }) {
  const names = Object.keys(of ?? {}).toSorted();
  return (
    <ul className="values">
      {names.map((name) => (
        <li key={name} className="mono">
          {visible(`${prefix}${name} = ${typed(of![name])}`)}
        </li>
      ))}
    </ul>
  );
}

/** The groups right below one; undefined: the groups are not known. */
const childrenOf = (g: NodeGroup, groups?: NodeGroup[]) =>
  groups?.filter((one) => one.parent_id === g.id && !isRoot(one));

function Gives({ g, groups }: { g: NodeGroup; groups?: NodeGroup[] }) {
  const classes = Object.keys(g.classes ?? {}).toSorted();
  const data = Object.keys(g.data ?? {}).toSorted();
  const pinned = g.nodes ?? [];
  const children = childrenOf(g, groups);
  return (
    // What scrolls must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className="page-scroll" aria-label="What it matches and gives" tabIndex={0}>
      <dl className="pairs">
        {g.description && (
          <>
            <dt>For</dt>
            <dd>{visible(g.description)}</dd>
          </>
        )}
        <dt>Rule</dt>
        <dd>
          {isRoot(g) ? (
            'every node'
          ) : g.rule_text ? (
            <span className="mono">{visible(g.rule_text)}</span>
          ) : (
            <Text size="sm" c="dimmed" span>
              none: only pinned nodes are in it, and groups below it inherit what it gives
            </Text>
          )}
        </dd>
        <dt>Pinned nodes</dt>
        <dd>
          {pinned.length === 0
            ? nothing
            : pinned.map((node, i) => (
                <span key={node}>
                  {i > 0 && ', '}
                  <Link to={nodeAddress(node)}>{visible(node)}</Link>
                </span>
              ))}
        </dd>
        <dt>Environment</dt>
        <dd>
          {environmentOf(g) || (
            <Text size="sm" c="dimmed" span>
              what the group above says
            </Text>
          )}
        </dd>
        <dt>Classes</dt>
        <dd>
          {classes.length === 0 && nothing}
          <ul className="values">
            {classes.map((name) => (
              <li key={name}>
                <span className="mono">{visible(name)}</span>
                <Values of={g.classes![name]} />
              </li>
            ))}
          </ul>
        </dd>
        <dt>Variables</dt>
        <dd>
          {Object.keys(g.variables ?? {}).length === 0 && nothing}
          <Values of={g.variables} prefix="$" />
        </dd>
        <dt>Data</dt>
        <dd>
          {data.length === 0 && nothing}
          {data.map((name) => (
            <Values key={name} of={g.data![name]} prefix={`${name}::`} />
          ))}
        </dd>
        <dt>Groups below</dt>
        <dd>
          {children?.length === 0
            ? nothing
            : children?.map((one, i) => (
                <span key={one.id}>
                  {i > 0 && ', '}
                  <Link to={groupAddress(one.name)}>{visible(one.name)}</Link>
                </span>
              ))}
        </dd>
      </dl>
    </section>
  );
}

const columns = (unpin: (n: GroupNode) => void, may: boolean): Column<GroupNode>[] => [
  {
    key: 'name',
    title: 'Node',
    width: 'minmax(150px, 2fr)',
    cell: (n) => <Link to={nodeAddress(n.name)}>{n.name}</Link>,
  },
  {
    key: 'why',
    title: 'Why',
    width: '90px',
    cell: (n) => (n.pinned ? 'pinned' : 'by the rule'),
  },
  {
    key: 'explain',
    title: 'What it gets',
    width: '100px',
    from: 600,
    cell: (n) => (
      <Link to="/groups" search={{ view: 'explain', node: n.name }} label={`Explain ${n.name}`}>
        explain
      </Link>
    ),
  },
  {
    key: 'unpin',
    title: 'Unpin',
    width: '80px',
    cell: (n) =>
      n.pinned &&
      may && (
        <button type="button" className="as-link" aria-label={`Unpin… ${n.name}`} onClick={() => unpin(n)}>
          Unpin…
        </button>
      ),
  },
];

function Members({ g }: { g: NodeGroup }) {
  const go = useGo();
  const may = useWrite(g);
  const list = useList('group.nodes', { group: g.id });
  const [asked, setAsked] = useState<GroupNode>();
  const edit = useAct('group.edit', [...touched]);
  const draft = draftOf(g);
  const left = draft.nodes.filter((name) => name !== asked?.name);
  return (
    <>
      <ListOf
        label="Nodes of the group"
        list={list}
        columns={columns(setAsked, may.may).filter((c) => c.key !== 'unpin' || list.rows.some((n) => n.pinned))}
        rowKey={(n) => n.name}
        onOpen={(n) => go(nodeAddress(n.name))}
        empty={
          <Empty title="No known node is in the group">
            <Text size="sm">
              A group has the nodes that its rule matches and those that are pinned, if the groups above it have them,
              too.
            </Text>
          </Empty>
        }
      />
      <ActDialog
        title={`Unpin ${asked?.name ?? ''}`}
        opened={asked !== undefined}
        close={() => setAsked(undefined)}
        act={() =>
          edit.mutate(
            { 'path.group': g.id, group: specOf({ ...draft, nodes: left }, g), revision: g.revision },
            { onSuccess: () => setAsked(undefined) },
          )
        }
        word="Unpin"
        busy={edit.isPending}
        error={edit.error}
        line={commandLine('group', 'edit', g.name, '--unpin', asked?.name)}
      >
        <Text size="sm">It stays in the group if the rule matches it.</Text>
      </ActDialog>
    </>
  );
}

/** Whether this page may write the group back. */
function useWrite(g: NodeGroup) {
  const may = useMay('group:write');
  const held = heldBack([g]);
  return { may: may.may && !held, why: may.why || held };
}

function Acts({ g, groups, nodes }: { g: NodeGroup; groups?: NodeGroup[]; nodes?: number }) {
  const go = useGo();
  const may = useMay('group:write');
  const write = useWrite(g);
  const [edits, editing] = useDisclosure();
  const [pins, pinning] = useDisclosure();
  const [adds, adding] = useDisclosure();
  const [deletes, deleting] = useDisclosure();
  const remove = useAct('group.delete', ['group.list', 'group.explain']); // what this page asks of it is not there any more
  const root = isRoot(g);
  const unknown = groups ? '' : 'The other groups are not known yet.';
  const knowingOthers = (one: { may: boolean; why: string }) => ({
    may: one.may && !unknown,
    why: one.why || unknown,
  });
  const children = childrenOf(g, groups)?.length ?? 0;
  const parent = children > 0 ? `There are ${many(children, 'group')} below it: delete or move them first.` : '';
  return (
    <>
      <RunButton targets={{ group: g.name }} words={['--group', g.name]} disabled={nodes === 0} />
      <ActButton {...knowingOthers(write)} variant="default" onClick={editing.open}>
        Change…
      </ActButton>
      {!root && (
        <ActButton {...write} variant="default" onClick={pinning.open}>
          Pin…
        </ActButton>
      )}
      <ActButton {...knowingOthers(may)} variant="default" onClick={adding.open}>
        New group below…
      </ActButton>
      {!root && (
        <ActButton
          {...knowingOthers({ may: may.may && !parent, why: may.why || parent })}
          variant="default"
          onClick={deleting.open}
        >
          Delete…
        </ActButton>
      )}
      {edits && groups && <GroupForm g={g} groups={groups} close={editing.close} />}
      {adds && groups && <GroupForm groups={groups} parent={root ? '' : g.name} close={adding.close} />}
      {pins && <Pin g={g} close={pinning.close} />}
      <ActDialog
        title={`Delete ${g.name}`}
        opened={deletes}
        close={deleting.close}
        act={() => remove.mutate({ group: g.id, revision: g.revision }, { onSuccess: () => go('/groups', {}, true) })}
        word="Delete"
        danger
        busy={remove.isPending}
        error={remove.error}
        line={commandLine('group', 'delete', g.name)}
      >
        <Text size="sm">
          {nodes === undefined ? 'Its nodes lose' : nodes === 1 ? '1 node loses' : `${many(nodes, 'node')} lose`} what
          it gives them.
        </Text>
      </ActDialog>
    </>
  );
}

function Pin({ g, close }: { g: NodeGroup; close: () => void }) {
  const [text, setText] = useState('');
  const edit = useAct('group.edit', [...touched]);
  const draft = draftOf(g);
  const names = listed(text).filter((name) => !draft.nodes.includes(name));
  return (
    <ActDialog
      title={`Pin nodes to ${g.name}`}
      opened
      close={close}
      act={() =>
        edit.mutate(
          {
            'path.group': g.id,
            group: specOf({ ...draft, nodes: [...draft.nodes, ...new Set(names)] }, g),
            revision: g.revision,
          },
          { onSuccess: close },
        )
      }
      word="Pin"
      busy={edit.isPending}
      error={edit.error}
      blocked={names.length === 0}
      line={commandLine('group', 'edit', g.name, ...(names.length > 0 ? names : ['NODE']).flatMap((n) => ['--pin', n]))}
    >
      <Lines
        label="Nodes"
        description="Names with spaces, commas or line ends between them"
        rows={[2, 10]}
        value={text}
        set={setText}
      />
      <Text size="sm">A pinned node is in the group whatever the rule says, if the groups above it have it, too.</Text>
    </ActDialog>
  );
}
