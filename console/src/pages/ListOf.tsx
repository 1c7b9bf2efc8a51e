import type { ReactNode } from 'react';
import type { Refusal } from '../api/client';
import { DataTable, type Column } from '../ui/DataTable';
import { Failure } from '../ui/parts';

interface Listed<T> {
  rows: T[];
  error: Refusal | null;
  loading: boolean;
  old: boolean;
  whole: boolean;
  more: () => void;
  again: () => void;
}

/** A list of the server's as a table. When it cannot be asked for anew it says why, and keeps what it has. */
export function ListOf<T>(props: {
  label: string;
  list: Listed<T>;
  columns: Column<T>[];
  rowKey: (row: T) => string;
  onOpen?: (row: T) => void;
  empty: ReactNode;
  rows?: T[]; // those of the list that are shown; all, if it is missing
  total?: number;
  order?: string;
  onOrder?: (order: string) => void;
}) {
  const { list, empty, rows, ...rest } = props;
  const shown = rows ?? list.rows;
  return (
    <>
      {list.error && <Failure error={list.error} again={list.again} />}
      {!(list.error && shown.length === 0) && (
        <DataTable
          {...rest}
          rows={shown}
          old={list.old}
          whole={list.whole}
          more={list.more}
          empty={list.loading ? null : empty}
        />
      )}
    </>
  );
}
