import { describe, expect, it } from 'vitest';
import type { Event } from '../api/client';
import { joined, wanted } from './Events';

const event = (number: number, more: Partial<Event> = {}) =>
  ({ number, node: 'a', kind: 'resource', ...more }) as Event;

describe('events', () => {
  it('has none twice, and the newest first', () => {
    expect(joined([event(5), event(4), event(3)], [event(4), event(2)]).map((e) => e.number)).toEqual([5, 4, 2]);
  });
  it('wants what the server would have sent', () => {
    expect(wanted(event(1, { status: 'failure' }), { status: 'failure', node: 'a' })).toBe(true);
    expect(wanted(event(1), { status: 'failure' })).toBe(false);
    expect(wanted(event(1, { type: 'File' }), { type: 'Service' })).toBe(false);
  });
});
