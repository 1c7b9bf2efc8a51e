package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var auditCommand = asking{noun{use: "audit", short: "See who did what", verbs: []declared{auditList, auditVerify, auditExport}}}

type auditListInput struct {
	request      api.AuditRequest
	since, until string
	failed       bool
	limit        int
}

var auditList = verb[auditListInput]{
	use: "list", short: "List what was done and what was refused, newest first",
	prints: aList,
	long:   `List the audit log. An entry whose outcome is "started" is of an act whose end was not seen: the server stopped meanwhile.`,
	example: "  tutti audit list --since 24h\n  tutti audit list --actor ann --failed\n  tutti audit list --operation 'user.*'\n" +
		"  tutti audit list --since 2026-03-01T00:00:00Z --limit 0 -o jsonl",
	flags: func(f flagSet, in *auditListInput) {
		f.StringVar(&in.request.Actor, "actor", "", "only of this user or node")
		f.StringVar(&in.request.Operation, "operation", "", "only this operation; with * at the end, those that begin so")
		f.StringVar(&in.since, "since", "", "not older than this: a time, or how long ago (90m, 24h)")
		f.StringVar(&in.until, "until", "", "older than this: a time, or how long ago")
		f.BoolVar(&in.failed, "failed", false, "only what failed or was denied")
		f.IntVar(&in.limit, "limit", 100, "at most so many; 0 means all")
	},
	run: func(ctx context.Context, c *call, in *auditListInput) error {
		var err error
		now := time.Now()
		if in.request.Since, err = momentFlag("since", in.since, now); err != nil {
			return err
		}
		if in.request.Until, err = momentFlag("until", in.until, now); err != nil {
			return err
		}
		if in.failed {
			in.request.Outcome = "failing"
		}
		if in.limit < 0 {
			return usageError{fmt.Errorf("--limit is %d; it must not be negative; 0 means all", in.limit)}
		}
		entries, err := some(ctx, c.app, api.AuditList, in.request, nextEntries, in.limit)
		if err != nil {
			return err
		}
		return print.List(c.printer(), entries, print.Table[api.AuditEntry]{
			Columns: []string{"time", "actor", "operation", "object", "outcome", "from", "detail"},
			Spare:   []string{"from", "detail"},
			Row: func(e api.AuditEntry) []any {
				return []any{e.At, actorText(e), e.Operation, e.Object, print.State(e.Outcome), e.Remote, e.Detail}
			},
			Name:  func(e api.AuditEntry) string { return fmt.Sprint(e.ID) },
			Empty: "No entries.",
		})
	},
}

func nextEntries(in *api.AuditRequest, after string, limit int) { in.After, in.Limit = after, limit }

// momentFlag reads a time, or how long ago it was.
func momentFlag(flag, text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	if back, err := parseDuration(text); err == nil && back >= 0 {
		return now.Add(-back).UTC().Format(time.RFC3339), nil
	}
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", usageError{fmt.Errorf("--%s %q is no time such as 2026-03-01T12:00:00Z and no duration such as 24h", flag, text)}
	}
	return moment.Format(time.RFC3339), nil
}

// actorText tells the proven from the claimed.
func actorText(e api.AuditEntry) string {
	switch {
	case e.Kind == "anonymous" && e.Actor == "":
		return "(nobody)"
	case e.Kind == "anonymous":
		return "(" + e.Actor + "?)"
	case e.Kind == "user" && e.Mark != "":
		return e.Actor + " (" + e.Mark + ")"
	case e.Kind == "user":
		return e.Actor
	}
	return strings.TrimSpace(e.Kind + " " + e.Actor)
}
