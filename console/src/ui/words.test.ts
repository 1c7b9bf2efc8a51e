import { describe, expect, it } from 'vitest';
import { ago, commandLine, count, duration, flags, many, visible } from './words';

describe('words', () => {
  it('writes durations as 6m12s', () => {
    expect([0.04, 3.25, 42, 372, 3600, 7500, 200_000].map(duration)).toEqual([
      '0s',
      '3.3s',
      '42s',
      '6m12s',
      '1h',
      '2h5m',
      '2d7h',
    ]);
  });
  it('never lets anything come from the future', () => {
    expect(ago('2026-01-01T00:10:00Z', Date.parse('2026-01-01T00:00:00Z'))).toBe('just now');
    expect(ago('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:07:12Z'))).toBe('7m ago');
  });
  it('groups digits and counts things', () => {
    expect([count(999), count(10_000), many(1, 'node'), many(2, 'node')]).toEqual([
      '999',
      '10\u202f000',
      '1 node',
      '2 nodes',
    ]);
  });
  it('quotes words for a shell', () => {
    expect(commandLine('node', 'list', '--where', `facts.os = "it's"`, false, undefined)).toBe(
      `tutti node list --where 'facts.os = "it'\\''s"'`,
    );
  });
  it('leaves out flags without a value', () => {
    expect(flags({ state: 'failed', kind: '', by: undefined, order: '-name' })).toEqual([
      '--state',
      'failed',
      '--order',
      '-name',
    ]);
  });
  it('shows signs that would change other text', () => {
    expect(visible('a\u0000b\u001b[31m\u202e')).toBe('a\\u0000b␛[31m\\u202e');
  });
});
