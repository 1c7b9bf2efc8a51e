package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var policyFreeze = noun{
	use: "freeze", short: "Say when nothing is released",
	verbs: []declared{freezeList, freezeSet, freezeRemove, freezeHistory},
}

func freezeTable(empty string) print.Table[api.Freeze] {
	return print.Table[api.Freeze]{
		Columns: []string{"freeze", "when", "zone", "environments", "now", "by", "set", "why"},
		Spare:   []string{"set", "by", "zone", "environments"},
		Row: func(f api.Freeze) []any {
			state := ""
			switch {
			case f.Removed:
				state = "(removed)"
			case f.Until != nil:
				state = "frozen until " + timeIn(*f.Until, f.Zone)
			}
			return []any{f.Name, freezeText(f), f.Zone, listText(f.Environments), print.State(state), f.Author, f.At, f.Why}
		},
		Name:  func(f api.Freeze) string { return f.Name },
		Empty: empty,
	}
}

func freezeText(f api.Freeze) string {
	if f.From == nil || f.To == nil {
		return f.Weekly
	}
	return timeIn(*f.From, f.Zone) + " to " + timeIn(*f.To, f.Zone)
}

const minuteForm = "2006-01-02 15:04"

// timeIn is a time by the clock of a zone.
func timeIn(t time.Time, zone string) string {
	where, err := time.LoadLocation(zone)
	if err != nil {
		return t.UTC().Format(time.RFC3339)
	}
	return t.In(where).Format(minuteForm)
}

var freezeList = verb[api.Nothing]{
	use: "list", short: "List the freezes, and which hold now", example: "  tutti policy freeze list",
	prints: aList,
	run: lists(api.FreezeList, func(*api.Nothing) print.Table[api.Freeze] {
		return freezeTable("No freezes: releases begin at any time.")
	}),
}

type freezeSetInput struct {
	d        api.FreezeDefinition
	from, to string
}

var freezeSet = verb[freezeSetInput]{
	use: "set FREEZE --zone ZONE --why TEXT (--from TIME --to TIME | --weekly WINDOW)", short: "Make a freeze, or its next version",
	args: exactly(1),
	long: `Make a freeze, or its next version. While it holds nothing begins: a release waits before its next wave, and goes on by itself afterwards.

A weekly freeze is days and times by the clock on the wall: 'mon-fri 18:00-06:00' (each evening, to the next morning), 'sat,sun 00:00-24:00',
'daily 22:00-23:30', 'fri 16:00-mon 06:00'.`,
	example: `  tutti policy freeze set christmas --from '2026-12-18 16:00' --to '2027-01-04 08:00' --zone Europe/Berlin --why 'nobody is there'
  tutti policy freeze set weekend --weekly 'fri 16:00-mon 06:00' --zone Europe/Berlin --environment production --why 'no changes at weekends'`,
	flags: func(f flagSet, in *freezeSetInput) {
		f.StringVar(&in.from, "from", "", "when it begins: '2026-12-18 16:00' by the clock of the zone, or 2026-12-18T15:00:00Z")
		f.StringVar(&in.to, "to", "", "when it is over")
		f.StringVar(&in.d.Weekly, "weekly", "", "instead, every week: 'mon-fri 18:00-06:00' or 'fri 16:00-mon 06:00'")
		f.StringVar(&in.d.Zone, "zone", "", "the time zone, as Europe/Berlin or UTC")
		f.StringVar(&in.d.Why, "why", "", "the reason, for people")
		f.StringSliceVarP(&in.d.Environments, "environment", "e", nil, "only in these environments; may be repeated")
		f.requires("zone", "why")
	},
	run: func(ctx context.Context, c *call, in *freezeSetInput) (err error) {
		if in.d.From, err = freezeTime("from", in.from, in.d.Zone); err != nil {
			return err
		}
		if in.d.To, err = freezeTime("to", in.to, in.d.Zone); err != nil {
			return err
		}
		return showAnswer(ctx, c.app, api.FreezeSet, api.FreezeSetRequest{Freeze: c.args[0], Definition: in.d}, func(to print.Printer, f api.Freeze) error {
			to.Hint("Freeze %s, version %d: %s (%s)", f.Name, f.Version, freezeText(f), f.Zone)
			if f.Until != nil {
				to.Hint("Nothing begins before %s", timeIn(*f.Until, f.Zone))
			}
			return nil
		})
	},
}

// freezeTime reads a time by the clock of a zone, or one with its own.
func freezeTime(flag, text, zone string) (*time.Time, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // it is not said
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return &at, nil
	}
	where, err := time.LoadLocation(zone)
	if err != nil {
		return nil, usageError{fault.New(fault.Invalid, "--zone %q is no time zone; name one as Europe/Berlin or UTC", zone)}
	}
	at, err := time.ParseInLocation(minuteForm, text, where)
	if err != nil {
		return nil, usageError{fault.New(fault.Invalid, "--%s %q is neither a time as '2026-12-18 16:00' nor as 2026-12-18T15:00:00Z", flag, text)}
	}
	return &at, nil
}

var freezeRemove = verb[api.FreezeNameRequest]{
	use: "delete FREEZE", short: "Delete a freeze, which ends it; its versions stay", example: "  tutti policy freeze delete christmas",
	destroys: lossOfFreeze,
	into:     func(in *api.FreezeNameRequest, args []string) { in.Freeze = args[0] },
	run: shows(api.FreezeRemove, print.Advice(func(f api.Freeze) string {
		return fmt.Sprintf("Freeze %s does not hold any more", f.Name)
	})),
}

var freezeHistory = verb[api.FreezeNameRequest]{
	use: "history FREEZE", short: "List every version of a freeze, newest first", example: "  tutti policy freeze history christmas",
	prints: aList,
	into:   func(in *api.FreezeNameRequest, args []string) { in.Freeze = args[0] },
	run:    lists(api.FreezeHistory, func(*api.FreezeNameRequest) print.Table[api.Freeze] { return freezeTable("") }),
}
