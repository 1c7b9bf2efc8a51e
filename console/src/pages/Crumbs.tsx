import type { ReactNode } from 'react';
import { Link } from '../routes/router';
import { Breadcrumbs, Text } from '../ui/kit';

/** Where a page is: the list that it is one of. */
export function Crumbs(props: {
  to: string;
  search?: Record<string, string | undefined>;
  of: string;
  children: ReactNode;
}) {
  return (
    <Breadcrumbs mb={4} fz="sm" component="nav" aria-label="Where this is">
      <Link to={props.to} search={props.search}>
        {props.of}
      </Link>
      <Text size="sm" span aria-current="page">
        {props.children}
      </Text>
    </Breadcrumbs>
  );
}
