import { describe, expect, it } from 'vitest';
import type { JobRun } from '../api/client';
import { runsIn } from './Job';

const run = (node: string, state: string) => ({ node, state }) as JobRun;
const fresh = new Map([run('a', 'failed'), run('z', 'failed'), run('b', 'running')].map((r) => [r.node, r]));
const names = (runs: JobRun[]) => runs.map((r) => `${r.node} ${r.state}`);

describe('runs of a job', () => {
  const listed = [run('a', 'running'), run('b', 'waiting'), run('c', 'failed')];
  it('are those of the list, as they are by now', () => {
    expect(names(runsIn(undefined, listed, fresh))).toEqual(['a failed', 'b running', 'c failed']);
  });
  it('in a state, have those that came into it since, and none that left it', () => {
    expect(names(runsIn('failed', [listed[2]!], fresh))).toEqual(['c failed', 'a failed', 'z failed']);
    expect(names(runsIn('waiting', [listed[1]!], fresh))).toEqual([]);
  });
});
