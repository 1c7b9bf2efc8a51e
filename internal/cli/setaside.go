package cli

import (
	"context"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var setAside = noun{
	use: "set-aside", short: "See and settle what a server near its nodes could not deliver",
	verbs: []declared{setAsideList, setAsideShow, setAsideRetry, setAsideDelete},
}

var setAsideList = verb[api.PageRequest]{
	use: "list", short: "List what the database refused, in the order in which it came, with the reasons",
	example: "  tutti cluster set-aside list\n  tutti cluster set-aside list -o json --server https://near-1.example.test:8140",
	long: `List what a server near its nodes took while it was cut off from the database, and the database refused for good. It takes of the room that
near_queue_bytes gives. The server that is asked is the one that keeps it: name it with --server.`,
	prints: aList,
	run: pages(api.SetAsideList, nextPage, func(*api.PageRequest) print.Table[api.SetAside] {
		return print.Table[api.SetAside]{
			Columns: []string{"number", "kind", "node", "came", "bytes", "reason"},
			Spare:   []string{"bytes", "came"},
			Row: func(p api.SetAside) []any {
				return []any{p.Number, p.Kind, p.Node, p.At, print.Bytes(p.Bytes), p.Reason}
			},
			Name:  func(p api.SetAside) string { return p.Number },
			Empty: "Nothing is set aside on this server.",
		}
	}),
}

var setAsideShow = verb[api.SetAsideRequest]{
	use: "show NUMBER", short: "Show what the database refused, with its content",
	example: "  tutti cluster set-aside show 17\n  tutti cluster set-aside show 17 -o json",
	into:    func(in *api.SetAsideRequest, args []string) { in.Number = args[0] },
	run: shows(api.SetAsideShow, func(to print.Printer, p api.SetAsideContent) error {
		if err := setAsideRows(to, p); err != nil {
			return err
		}
		to.Line("")
		to.Line(string(p.Content))
		return nil
	}),
}

var setAsideRows = print.Rows(func(p api.SetAsideContent) [][]string {
	return [][]string{
		{"Number", p.Number},
		{"Kind", p.Kind},
		{"Node", p.Node},
		{"Came", print.Ago(p.At, time.Now())},
		{"Bytes", print.Bytes(p.Bytes)},
		{"Reason", p.Reason},
		{"Problem", p.Problem},
	}
})

// setAsideInput names pieces, or all: those that there were when somebody was asked, if anybody was.
type setAsideInput struct {
	all   bool
	shown []string
}

func setAsideFlags(f flagSet, in *setAsideInput) {
	f.BoolVar(&in.all, "all", false, "all that this server has set aside")
}

var setAsideRetry = verb[setAsideInput]{
	use: "retry NUMBER... | --all", short: "Hand to the database again what it refused", args: namesUnless("all", "number"), flags: setAsideFlags,
	example: "  tutti cluster set-aside retry 17\n  tutti cluster set-aside retry --all",
	long: `Hand to the database again what it refused, for example after an upgrade that mended the reason. What it refuses once more is set aside again.
Facts and reports that are older than what the database has by now change nothing there.`,
	run: func(ctx context.Context, c *call, in *setAsideInput) error {
		return settleAside(ctx, c, in, api.SetAsideRetry, "will be tried again within seconds: `tutti cluster set-aside list` says what comes back")
	},
}

var setAsideDelete = verb[setAsideInput]{
	use: "delete NUMBER... | --all", short: "Delete what the database refused", args: namesUnless("all", "number"), flags: setAsideFlags,
	example: "  tutti cluster set-aside delete 17\n  tutti cluster set-aside delete --all",
	destroys: func(ctx context.Context, c *call, in *setAsideInput) (string, error) {
		numbers, err := asideNumbers(ctx, c, in)
		if err != nil || len(numbers) == 0 {
			return "", err
		}
		in.shown = numbers
		return "delete for good what nodes sent: " + fault.Count(len(numbers), "piece") + " (" + strings.Join(numbers[:min(len(numbers), 10)], ", ") + ")", nil
	},
	run: func(ctx context.Context, c *call, in *setAsideInput) error {
		return settleAside(ctx, c, in, api.SetAsideDelete, "deleted")
	},
}

// asideNumbers is what is named; all that there is when all is meant.
func asideNumbers(ctx context.Context, c *call, in *setAsideInput) ([]string, error) {
	switch {
	case !in.all:
		return c.args, nil
	case in.shown != nil:
		return in.shown, nil
	}
	all, err := some(ctx, c.app, api.SetAsideList, api.PageRequest{}, nextPage, 0)
	numbers := make([]string, len(all))
	for i, p := range all {
		numbers[i] = p.Number
	}
	return numbers, err
}

// asideAtOnce is how many pieces may be named in a request.
const asideAtOnce = 1000

func settleAside(ctx context.Context, c *call, in *setAsideInput, op api.Op[api.SetAsideNumbers, api.SetAsideCount], done string) error {
	numbers, err := asideNumbers(ctx, c, in)
	if err != nil {
		return err
	}
	var total api.SetAsideCount
	for len(numbers) > 0 {
		n := min(len(numbers), asideAtOnce)
		answer, err := ask(ctx, c.app, op, api.SetAsideNumbers{Numbers: numbers[:n]})
		if err != nil {
			return err
		}
		total.Count += answer.Count
		numbers = numbers[n:]
	}
	if total.Count == 0 && !in.all {
		return fault.New(fault.NotFound, "none of these is set aside on this server; `tutti cluster set-aside list` lists what is")
	}
	return print.One(c.printer(), total, func(to print.Printer, t api.SetAsideCount) error {
		to.Line(fault.Count(t.Count, "piece") + " " + done)
		return nil
	})
}
