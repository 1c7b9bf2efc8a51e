package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/store/move"
)

// sumsOf adds up all tables. It reads them another way than Dump does, whose values went into the copy: each column by its type, in the order
// of their names.
func sumsOf(ctx context.Context, config Config) (s move.Sums, err error) {
	d, err := openMoving(ctx, config)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s.Tables = map[string]move.Sum{}
	err = d.look(ctx, func(q querier) error {
		tables, err := readTables(ctx, q, d.dialect)
		if err != nil {
			return err
		}
		for _, table := range tables {
			if s.Tables[table.Name], err = sumOf(ctx, q, table); err != nil {
				return fmt.Errorf("table %s: %w", table.Name, err)
			}
		}
		d.q = q
		s.Numbers, err = d.Sequences(ctx)
		return err
	})
	return s, explain(err, "add up %s", config.Name())
}

// typed is a column by its type, as it is read and added.
type typed struct {
	name string
	to   any
	add  func(a *move.Adder)
}

func typedColumn(name string, kind columnKind) typed {
	c := typed{name: name}
	switch kind {
	case ints:
		v := new(sql.Null[int64])
		c.to, c.add = v, adding(v, (*move.Adder).Int)
	case texts:
		v := new(sql.Null[string])
		c.to, c.add = v, adding(v, (*move.Adder).Text)
	case floats:
		v := new(sql.Null[float64])
		c.to, c.add = v, adding(v, (*move.Adder).Float)
	case blobs:
		v := new(byteCell)
		c.to, c.add = v, func(a *move.Adder) {
			if v.null {
				a.Null()
				return
			}
			a.Bytes(v.bytes)
		}
	}
	return c
}

// byteCell is bytes as the driver has them. It tells no bytes from nothing.
type byteCell struct {
	bytes []byte
	null  bool
}

// Scan implements sql.Scanner. What is scanned is added before the next row is read.
func (c *byteCell) Scan(from any) error {
	switch v := from.(type) {
	case nil:
		c.bytes, c.null = nil, true
	case []byte:
		c.bytes, c.null = v, false
	default:
		return fmt.Errorf("a column of bytes holds a %T", from)
	}
	return nil
}

func adding[T any](v *sql.Null[T], add func(*move.Adder, T)) func(*move.Adder) {
	return func(a *move.Adder) {
		if !v.Valid {
			a.Null()
			return
		}
		add(a, v.V)
	}
}

func sumOf(ctx context.Context, q querier, t schemaTable) (move.Sum, error) {
	columns := make([]typed, len(t.Columns))
	for i, name := range t.Columns {
		columns[i] = typedColumn(name, t.kinds[i])
	}
	slices.SortFunc(columns, func(a, b typed) int { return strings.Compare(a.name, b.name) })
	names, to := make([]string, len(columns)), make([]any, len(columns))
	for i, c := range columns {
		names[i], to[i] = c.name, c.to
	}
	rows, err := q.query(ctx, "SELECT "+identifiers(names)+" FROM "+identifier(t.Name))
	if err != nil {
		return move.Sum{}, err
	}
	defer rows.Close() //nolint:errcheck // Err says it
	a := move.NewAdder()
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return move.Sum{}, err
		}
		for _, c := range columns {
			c.add(a)
		}
		a.EndRow()
	}
	return a.Sum(), rows.Err()
}
