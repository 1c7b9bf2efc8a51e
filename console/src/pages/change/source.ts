import type { Release } from '../../api/client';

/** What a release gives, in a word or two. */
export function sourceOf(r: Pick<Release, 'kind' | 'preview' | 'rolls_back'>): string {
  if (r.kind !== 'rollback') return `preview ${r.preview ?? ''}`;
  return r.rolls_back ? `roll back of ${r.rolls_back}` : 'roll back';
}
