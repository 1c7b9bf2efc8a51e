package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) policyFreeze() *cobra.Command {
	return noun("freeze", "Say when nothing is released", a.freezeList(), a.freezeSet(), a.freezeRemove(), a.freezeHistory())
}

func freezeTable(empty string, now time.Time) print.Table[api.Freeze] {
	return print.Table[api.Freeze]{
		Columns: []string{"freeze", "when", "zone", "environments", "now", "by", "set", "why"},
		Row: func(f api.Freeze) []string {
			state := ""
			switch {
			case f.Removed:
				state = "(removed)"
			case f.Until != nil:
				state = "frozen until " + timeIn(*f.Until, f.Zone)
			}
			return []string{f.Name, freezeText(f), f.Zone, listText(f.Environments), state, f.Author, print.Ago(f.At, now), f.Why}
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

func (a *app) freezeList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the freezes, and which hold now", Args: exactly(0), Example: "  tutti policy freeze list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			freezes, err := ask(cmd.Context(), a, api.FreezeList, api.Nothing{})
			if err != nil {
				return err
			}
			return print.List(a.printer(), freezes.Items, freezeTable("No freezes: releases begin at any time.", time.Now()))
		},
	}
}

func (a *app) freezeSet() *cobra.Command {
	var d api.FreezeDefinition
	var from, to string
	cmd := &cobra.Command{
		Use: "set FREEZE --zone ZONE --why TEXT (--from TIME --to TIME | --weekly WINDOW)", Short: "Make a freeze, or its next version", Args: exactly(1),
		Long: `Make a freeze, or its next version. While it holds nothing begins: a release waits before its next wave, and goes on by itself afterwards.

A weekly freeze is days and times by the clock on the wall: 'mon-fri 18:00-06:00' (each evening, to the next morning), 'sat,sun 00:00-24:00',
'daily 22:00-23:30', 'fri 16:00-mon 06:00'.`,
		Example: `  tutti policy freeze set christmas --from '2026-12-18 16:00' --to '2027-01-04 08:00' --zone Europe/Berlin --why 'nobody is there'
  tutti policy freeze set weekend --weekly 'fri 16:00-mon 06:00' --zone Europe/Berlin --environment production --why 'no changes at weekends'`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if d.From, err = freezeTime("from", from, d.Zone); err != nil {
				return err
			}
			if d.To, err = freezeTime("to", to, d.Zone); err != nil {
				return err
			}
			f, err := ask(cmd.Context(), a, api.FreezeSet, api.FreezeSetRequest{Freeze: args[0], Definition: d})
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(f)
			}
			a.hint("Freeze %s, version %d: %s (%s)", f.Name, f.Version, freezeText(f), f.Zone)
			if f.Until != nil {
				a.hint("Nothing begins before %s", timeIn(*f.Until, f.Zone))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "when it begins: '2026-12-18 16:00' by the clock of the zone, or 2026-12-18T15:00:00Z")
	flags.StringVar(&to, "to", "", "when it is over")
	flags.StringVar(&d.Weekly, "weekly", "", "instead, every week: 'mon-fri 18:00-06:00' or 'fri 16:00-mon 06:00'")
	flags.StringVar(&d.Zone, "zone", "", "the time zone, as Europe/Berlin or UTC")
	flags.StringVar(&d.Why, "why", "", "the reason, for people")
	flags.StringSliceVar(&d.Environments, "environment", nil, "only in these environments; may be repeated")
	_ = cmd.MarkFlagRequired("zone")
	_ = cmd.MarkFlagRequired("why")
	return cmd
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

func (a *app) freezeRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove FREEZE", Short: "End a freeze; its versions stay", Args: exactly(1), Example: "  tutti policy freeze remove christmas",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := ask(cmd.Context(), a, api.FreezeRemove, api.FreezeNameRequest{Freeze: args[0]})
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(f)
			}
			a.hint("Freeze %s does not hold any more", f.Name)
			return nil
		},
	}
}

func (a *app) freezeHistory() *cobra.Command {
	return &cobra.Command{
		Use: "history FREEZE", Short: "List every version of a freeze, newest first", Args: exactly(1), Example: "  tutti policy freeze history christmas",
		RunE: func(cmd *cobra.Command, args []string) error {
			freezes, err := ask(cmd.Context(), a, api.FreezeHistory, api.FreezeNameRequest{Freeze: args[0]})
			if err != nil {
				return err
			}
			return print.List(a.printer(), freezes.Items, freezeTable("", time.Now()))
		},
	}
}
