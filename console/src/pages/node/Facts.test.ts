import { describe, expect, it } from 'vitest';
import { condition, found } from './Facts';

describe('facts', () => {
  const facts = { os: { family: 'Debian', release: { major: '12' } }, disks: ['sda', 'sdb'], virtual: false };
  it('finds by path and by value', () => {
    expect(found(facts, 'os.release')).toEqual({ os: { release: { major: '12' } } });
    expect(found(facts, 'sdb')).toEqual({ disks: ['sdb'] });
    expect(found(facts, 'nothing')).toBeUndefined();
    expect(found(facts, '')).toBe(facts);
  });
  it('makes a condition of a value', () => {
    expect(condition(['os', 'family'], 'Deb"ian')).toBe('facts.os.family = "Deb\\"ian"');
    expect(condition(['virtual'], false)).toBe('facts.virtual = false');
    expect(condition(['a b'], 'x')).toBeUndefined();
  });
});
