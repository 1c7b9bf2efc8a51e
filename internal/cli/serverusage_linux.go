package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var serverUsage = asking{verb[api.Nothing]{
	use: "usage", short: "Say what the data takes, how fast it grows, and until when the disk lasts",
	prints: aList,
	long: `Say what each part of the server's data takes, how much it grows in a day, and when the
disk of the data directory will be full if it goes on like that. A day's growth is the
mean of up to 30 days; the server measures once a day for that, so a new one cannot say.`,
	example: "  tutti server usage\n  tutti server usage -o json",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		return showAnswer(ctx, c.app, api.ServerUsage, api.Nothing{}, func(to print.Printer, usage api.Usage) error {
			rows := append(usage.Areas, api.UsageArea{Area: "all", Bytes: usage.Bytes, Growth: usage.Growth})
			err := print.List(to, rows, print.Table[api.UsageArea]{
				Columns: []string{"what", "size", "a day"},
				Row:     func(u api.UsageArea) []any { return []any{u.Area, print.Size(u.Bytes), growth(u.Growth)} },
				Name:    func(u api.UsageArea) string { return u.Area },
			})
			to.Hint("%s", diskText(usage, time.Now()))
			return err
		})
	},
}}

// growth is a cell for how much a day adds; nothing as long as it was not measured on another day.
func growth(bytes *int64) any {
	if bytes == nil {
		return nil
	}
	return print.Growth(*bytes)
}

// diskText says how long the disk lasts.
func diskText(u api.Usage, now time.Time) string {
	free := print.Bytes(u.Disk.FreeBytes) + " are free on the disk of the data directory"
	switch {
	case u.Disk.ReadOnly:
		return free + ": it is full, and the server stores nothing until there is room"
	case u.Growth == nil:
		return free + "; how long they last is known when it was measured on another day"
	case u.Disk.FullAt == nil:
		return free + "; at this rate it does not fill up"
	}
	days := int(u.Disk.FullAt.Sub(now).Hours() / 24)
	return fmt.Sprintf("%s; at this rate they last %s, until %s", free, fault.Count(max(days, 0), "day"), u.Disk.FullAt.Local().Format(time.DateOnly))
}
