package api

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tutti-project/tutti/internal/fault"
)

// Ended is the last member of an answer that began well and ended early. Its rows
// are not all there are.
const Ended = "problem"

// Rows performs QueryRun and hands over what comes as it comes: first the columns
// and the total, if it was asked for, then one row after the other. A row may be
// kept.
func (c *Client) Rows(ctx context.Context, request QueryRequest, begin func(QueryAnswer) error, each func(json.RawMessage) error) error {
	answer, err := c.perform(ctx, QueryRun.Operation(), request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	r := rowReader{decoder: json.NewDecoder(answer.Body), begin: begin, each: each}
	if err := r.read(); err != nil {
		if r.asked != nil || r.ended {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, ok := errors.AsType[*json.SyntaxError](err); ok {
			return c.foreign(answer, QueryRun.said.Name, err)
		}
		return fault.Wrap(fault.Unavailable, err, "the answer of %s broke off; ask again, or for less", c.server.Host)
	}
	return nil
}

// rowReader reads {"columns": [...], "total": n, "rows": [...], "problem": {...}}.
type rowReader struct {
	decoder *json.Decoder
	head    QueryAnswer
	begin   func(QueryAnswer) error
	each    func(json.RawMessage) error
	begun   bool
	asked   error // of begin or each
	ended   bool  // by a problem that the server tells of
}

func (r *rowReader) read() error {
	if _, err := r.decoder.Token(); err != nil { // {
		return err
	}
	for r.decoder.More() {
		name, err := r.decoder.Token()
		if err != nil {
			return err
		}
		if err := r.member(name); err != nil {
			return err
		}
	}
	if !r.begun {
		return errors.New("it has no rows")
	}
	_, err := r.decoder.Token() // }
	return err
}

func (r *rowReader) member(name json.Token) error {
	switch name {
	case "columns":
		return r.decoder.Decode(&r.head.Columns)
	case "total":
		return r.decoder.Decode(&r.head.Total)
	case "rows":
		return r.rows()
	case Ended:
		var p Problem
		if err := r.decoder.Decode(&p); err != nil {
			return err
		}
		r.ended = true
		return p.fault()
	}
	var skipped json.RawMessage
	return r.decoder.Decode(&skipped)
}

func (r *rowReader) rows() error {
	r.begun = true
	if r.asked = r.begin(r.head); r.asked != nil {
		return r.asked
	}
	if _, err := r.decoder.Token(); err != nil { // [
		return err
	}
	for r.decoder.More() {
		var row json.RawMessage
		if err := r.decoder.Decode(&row); err != nil {
			return err
		}
		if r.asked = r.each(row); r.asked != nil {
			return r.asked
		}
	}
	_, err := r.decoder.Token() // ]
	return err
}
