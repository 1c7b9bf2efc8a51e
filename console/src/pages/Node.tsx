import { lazy, Suspense, type ComponentType } from 'react';
import { moves, useAfterEvents } from '../data/live';
import { useAgain, useAsk } from '../data/query';
import { usePart, useSearch } from '../routes/router';
import { Group, Tabs } from '../ui/kit';
import { Coming, CommandLine, Failure, Page, State, Time } from '../ui/parts';
import { commandLine } from '../ui/words';
import { Crumbs } from './Crumbs';
import { Connection, isOld } from './Nodes';
import { RunButton } from './RunDialog';

const Status = lazy(() => import('./node/Status'));
const Resources = lazy(() => import('./node/Resources'));
const Facts = lazy(() => import('./node/Facts'));
const Runs = lazy(() => import('./node/Runs'));
const NodeJobs = lazy(() => import('./node/NodeJobs'));
const Generations = lazy(() => import('./node/Generations'));
const Groups = lazy(() => import('./groups/Explain').then((m) => ({ default: m.ExplainNode })));

/** The tabs, each with the command line that does the same; Groups shows its own. */
const tabs: { key: string; text: string; shows: ComponentType<{ name: string }>; line?: string[] }[] = [
  { key: 'status', text: 'Status', shows: Status, line: ['node', 'why'] },
  { key: 'resources', text: 'Resources', shows: Resources, line: ['catalog', 'show'] },
  { key: 'facts', text: 'Facts', shows: Facts, line: ['node', 'facts'] },
  { key: 'generations', text: 'Generations', shows: Generations, line: ['catalog', 'generations'] },
  { key: 'runs', text: 'Runs', shows: Runs, line: ['report', 'list', '--node'] },
  { key: 'jobs', text: 'Jobs', shows: NodeJobs, line: ['job', 'list', '--node'] },
  { key: 'groups', text: 'Groups', shows: Groups },
];

/** What only one tab has in the address. */
const ofOneTab = { view: '', open: '', near: '', box: '', fit: '', all: '' };

/** One node: how it stands, and all that is known of it. Another node is another page. */
export function NodePage() {
  const name = usePart('name');
  return <OneNode key={name} name={name} />;
}

function OneNode({ name }: { name: string }) {
  const [search, change] = useSearch();
  const tab = tabs.find((t) => t.key === search.tab) ?? tabs[0]!;
  const node = useAsk('node.show', { name });
  const again = useAgain();
  useAfterEvents(
    (e) => e.node === name && (e.kind === 'begin' || moves(e)),
    () =>
      again(
        'node.show',
        'node.why',
        'node.graph',
        'node.catalog',
        'node.facts',
        'node.delivery',
        'group.explain',
        'report.list',
        'report.show',
        'job.list',
      ),
  );
  const n = node.data;
  const Shown = tab.shows;
  return (
    <Page
      name={name}
      title={
        <Group gap="sm">
          <span>{name}</span>
          {n && <State of={n.state} old={isOld(n)} />}
        </Group>
      }
      above={
        <Crumbs to="/nodes" of="Nodes">
          {name}
        </Crumbs>
      }
      actions={<RunButton targets={{ nodes: [name] }} words={[name]} />}
    >
      {node.error && <Failure error={node.error} again={() => void node.refetch()} />}
      {n && (
        <Group gap="4px 16px" fz="sm">
          <Connection node={n} />
          <span>
            reported <Time at={n.report_at} />
          </span>
          {n.environment && <span>environment {n.environment}</span>}
          {n.noop && <span>noop</span>}
          {n.cached_catalog && <State of="stopped">applied the catalog that it had</State>}
          {n.certificate && <State of="failed">certificate {n.certificate}</State>}
          {n.deactivated_at && <State of="stopped">deactivated</State>}
          {n.expired_at && <State of="stopped">expired</State>}
        </Group>
      )}
      {!node.error && (
        <>
          <Tabs
            value={tab.key}
            onChange={(value) => change({ tab: value === 'status' ? '' : (value ?? ''), ...ofOneTab }, false)}
            keepMounted={false}
          >
            <Tabs.List>
              {tabs.map((t) => (
                <Tabs.Tab key={t.key} value={t.key}>
                  {t.text}
                </Tabs.Tab>
              ))}
            </Tabs.List>
          </Tabs>
          <div className="page" role="tabpanel" aria-label={tab.text}>
            <Suspense fallback={<Coming />}>
              <Shown name={name} />
            </Suspense>
          </div>
          {tab.line && !(tab.key === 'resources' && search.view) && (
            <CommandLine line={commandLine(...tab.line, name)} />
          )}
        </>
      )}
    </Page>
  );
}
