import type { ReactNode } from 'react';
import type { Refusal } from '../api/client';
import { DataTable, type Column } from '../ui/DataTable';
import { Failure } from '../ui/parts';

interface Listed<T> {
  rows: T[];
  error: Refusal | null;
  loading: boolean;
  whole: boolean;
  more: () => void;
  again: () => void;
}

/** A list of the server's as a table; a list that failed with nothing to show says why. */
export function ListOf<T>(props: {
  label: string;
  list: Listed<T>;
  columns: Column<T>[];
  rowKey: (row: T) => string;
  onOpen?: (row: T) => void;
  empty: ReactNode;
  rows?: T[]; // those of the list that are shown; all, if it is missing
}) {
  const { list } = props;
  if (list.error && list.rows.length === 0) return <Failure error={list.error} again={list.again} />;
  return (
    <DataTable
      label={props.label}
      columns={props.columns}
      rows={props.rows ?? list.rows}
      rowKey={props.rowKey}
      whole={list.whole}
      more={list.more}
      onOpen={props.onOpen}
      empty={list.loading ? null : props.empty}
    />
  );
}
