package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var catalogGenerations = verb[api.NameRequest]{
	use: "generations NODE", short: "Show what a node may have, what it applied, and what was released to it",
	prints: aList,
	long: `Show what a node may have now (its pointer), how what it applied last stands to that, and the catalogs that were
released to it and are kept, newest first.

  current   it applied what it may have
  behind    it applied what it had before
  foreign   it applied a catalog that it was not given here
  unknown   it did not say yet; a run in noop mode applies nothing`,
	example: "  tutti catalog generations web-1.example.test\n  tutti catalog generations web-1.example.test -o json",
	into:    byName,
	run: shows(api.NodeDelivery, func(to print.Printer, d api.Delivery) error {
		hintDelivery(to, d)
		return print.List(to, d.Generations, generationTable(d))
	}),
}

// hintDelivery says what a node may have and what it applied.
func hintDelivery(to print.Printer, d api.Delivery) {
	if p := d.Pointer; p == nil {
		to.Hint("%s is in %s mode (%s) and may have no catalog: %s", d.Name, d.Mode, modeFrom(d.ModeFrom, d.ModeGroup), d.Why)
	} else {
		to.Hint("%s is in %s mode (%s) and may have catalog %s%s: environment %s, version %s", d.Name, d.Mode, modeFrom(d.ModeFrom, d.ModeGroup),
			short(p.Catalog), modeText("", p.Generation), p.Environment, short(p.Version))
	}
	if d.Pin != nil {
		to.Hint("It is pinned by %s, %s: %s", d.Pin.By, print.Ago(d.Pin.At, time.Now()), d.Pin.Why)
	}
	text := ""
	if d.Applied != nil {
		text = ", " + print.Ago(d.Applied.At, time.Now())
		if d.Applied.Generation > 0 {
			text += ", generation " + strconv.FormatInt(d.Applied.Generation, 10)
		}
	}
	to.Hint("It is %s%s", deliveryState(d.State), text)
}

// modeText is a mode with the generation that it gives.
func modeText(mode string, generation int64) string {
	if generation == 0 {
		return mode
	}
	return mode + ", generation " + strconv.FormatInt(generation, 10)
}

// deliveryState says how what a node applied stands to what it may have.
func deliveryState(state string) string {
	switch state {
	case "current":
		return "current: applied"
	case "behind":
		return "behind: an older one is applied"
	case "foreign":
		return "foreign: it applied a catalog that it was not given here"
	}
	return "unknown: it did not say what it applied"
}

func generationTable(d api.Delivery) print.Table[api.Generation] {
	return print.Table[api.Generation]{
		Columns: []string{"generation", "catalog", "environment", "version", "released", "by", "why"},
		Spare:   []string{"by", "environment", "version"},
		Row: func(g api.Generation) []any {
			number := strconv.FormatInt(g.Number, 10)
			if d.Applied != nil && d.Applied.Generation == g.Number {
				number += " (applied)"
			}
			return []any{number, print.ID(g.Catalog), g.Environment, print.ID(g.Version), g.At, g.By, g.Why}
		},
		Name:  func(g api.Generation) string { return strconv.FormatInt(g.Number, 10) },
		Empty: "Nothing was released to it.",
	}
}

type catalogPinInput struct{ why string }

var catalogPin = verb[catalogPinInput]{
	use: "pin NODE --why TEXT", short: "Keep a node at the generation that it has: releases to it are refused", args: exactly(1),
	example: "  tutti catalog pin web-1.example.test --why 'waits for the new disk'",
	flags:   func(f flagSet, in *catalogPinInput) { f.StringVar(&in.why, "why", "", "why, for those who wonder") },
	run: func(ctx context.Context, c *call, in *catalogPinInput) error {
		client, err := c.client()
		if err != nil {
			return err
		}
		if _, err := api.NodePin.Call(ctx, client, api.NodePinRequest{Name: c.args[0], Why: in.why}); err != nil {
			return err
		}
		c.hint("Node %s keeps its catalog until: tutti catalog unpin %s", c.args[0], c.args[0])
		return nil
	},
}

var catalogUnpin = verb[api.Nothing]{
	use: "unpin NODE", short: "Let releases reach a node again", example: "  tutti catalog unpin web-1.example.test",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		_, err := ask(ctx, c.app, api.NodeUnpin, api.NameRequest{Name: c.args[0]})
		return err
	},
}
