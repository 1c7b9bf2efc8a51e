import { expect, it } from 'vitest';
import type { Certificate } from '../api/client';
import { opened } from './Certificates';

it('of a name with a request and a certificate the row is opened that was chosen', () => {
  const request = { name: 'a', state: 'requested', fingerprint: '1' } as Certificate;
  const revoked = { name: 'a', state: 'revoked', fingerprint: '2', serial: '05' } as Certificate;
  const rows = [request, revoked];
  expect(opened(rows, 'a', revoked.serial)).toBe(revoked);
  expect(opened(rows, 'a', request.serial)).toBe(request);
  expect(opened([revoked], 'a')).toBe(revoked);
  expect(opened(rows, undefined)).toBeUndefined();
});
