package cli

import (
	"context"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

// A third of the verbs are one of these kinds: each makes a verb's run of an operation and of what is printed.

// shows asks for one thing and prints it: as JSON, or for people as text does.
func shows[Request, Response any](op api.Op[Request, Response], text func(print.Printer, Response) error) func(context.Context, *call, *Request) error {
	return func(ctx context.Context, c *call, in *Request) error { return showAnswer(ctx, c.app, op, *in, text) }
}

// does acts, and says as a hint what was done.
func does[Request, Response any](op api.Op[Request, Response], done func(in *Request) string) func(context.Context, *call, *Request) error {
	return func(ctx context.Context, c *call, in *Request) error {
		answer, err := ask(ctx, c.app, op, *in)
		if err != nil {
			return err
		}
		return print.One(c.printer(), answer, print.Advice(func(Response) string { return done(in) }))
	}
}

// lists asks for a list that comes at once, and prints it.
func lists[Request, T any](op api.Op[Request, api.List[T]], table func(in *Request) print.Table[T]) func(context.Context, *call, *Request) error {
	return func(ctx context.Context, c *call, in *Request) error {
		return c.list(list(ctx, c.app, op, func(string) Request { return *in }, table(in)))
	}
}

// pages asks for a list page by page, and prints it while it comes.
func pages[Request, T any](
	op api.Op[Request, api.List[T]], next func(in *Request, after string, limit int), table func(in *Request) print.Table[T],
) func(context.Context, *call, *Request) error {
	return func(ctx context.Context, c *call, in *Request) error {
		return c.list(list(ctx, c.app, op, func(after string) Request {
			page := *in
			next(&page, after, pageSize)
			return page
		}, table(in)))
	}
}

// pageSize is how many rows a page has.
const pageSize = 1000

// ask calls an operation that answers with one thing.
func ask[Request, Response any](ctx context.Context, a *app, op api.Op[Request, Response], request Request) (answer Response, err error) {
	client, err := a.client()
	if err != nil {
		return answer, err
	}
	return op.Call(ctx, client, request)
}

// list ends a list of so many rows: of one that is empty it says why, if that is known.
func (c *call) list(rows int, err error) error {
	if err == nil && rows == 0 {
		c.strangers()
	}
	return err
}

// list calls a list operation to its end and prints what comes; it returns how many rows that were.
func list[Request, T any](
	ctx context.Context, a *app, op api.Op[Request, api.List[T]], request func(after string) Request, t print.Table[T],
) (rows int, err error) {
	l, err := print.NewListing(a.printer(), t)
	if err != nil {
		return 0, err
	}
	client, err := a.client()
	if err != nil {
		return 0, err
	}
	if err := api.All(ctx, client, op, request, l.Add); err != nil {
		return 0, err
	}
	return l.Count(), l.End()
}

// showAnswer asks for one thing and prints it.
func showAnswer[Request, Response any](
	ctx context.Context, a *app, op api.Op[Request, Response], request Request, text func(print.Printer, Response) error,
) error {
	answer, err := ask(ctx, a, op, request)
	if err != nil {
		return err
	}
	return print.One(a.printer(), answer, text)
}

// some asks for the first rows of a list, so many at most; 0: all.
func some[Request, T any](
	ctx context.Context, a *app, op api.Op[Request, api.List[T]], request Request, next func(in *Request, after string, limit int), most int,
) (rows []T, err error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	for after := ""; ; {
		limit := pageSize
		if most > 0 {
			limit = min(most-len(rows), pageSize)
		}
		next(&request, after, limit)
		page, err := op.Call(ctx, client, request)
		if err != nil {
			return nil, err
		}
		rows, after = append(rows, page.Items...), page.Next
		if after == "" || most > 0 && len(rows) >= most {
			return rows, nil
		}
	}
}

// byName takes the one argument as a name.
func byName(in *api.NameRequest, args []string) { in.Name = args[0] }
