package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

func (a *app) auditCommand() *cobra.Command {
	return a.withAccess(noun("audit", "See who did what", a.auditList(), a.auditVerify(), a.auditExport()))
}

func (a *app) auditList() *cobra.Command {
	var request api.AuditRequest
	var since, until string
	var failed bool
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List what was done and what was refused, newest first", Args: exactly(0),
		Long: `List the audit log. An entry whose outcome is "started" is of an act whose end was not seen: the server stopped meanwhile.`,
		Example: "  tutti audit list --since 24h\n  tutti audit list --actor ann --failed\n  tutti audit list --operation 'user.*'\n" +
			"  tutti audit list --since 2026-03-01T00:00:00Z --limit 0 -o jsonl",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			now := time.Now()
			if request.Since, err = momentFlag("since", since, now); err != nil {
				return err
			}
			if request.Until, err = momentFlag("until", until, now); err != nil {
				return err
			}
			if failed {
				request.Outcome = "failing"
			}
			if limit < 0 {
				return usageError{fmt.Errorf("--limit is %d; it must not be negative; 0 means all", limit)}
			}
			entries, err := auditPages(a, cmd, request, limit)
			if err != nil {
				return err
			}
			return print.List(a.printer(), entries, print.Table[api.AuditEntry]{
				Columns: []string{"time", "actor", "operation", "object", "outcome", "from", "detail"},
				Row: func(e api.AuditEntry) []string {
					return []string{e.At.Local().Format("2006-01-02 15:04:05"), actorText(e), e.Operation, e.Object, e.Outcome, e.Remote, e.Detail}
				},
				Name:  func(e api.AuditEntry) string { return fmt.Sprint(e.ID) },
				Empty: "No entries.",
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.Actor, "actor", "", "only of this user or node")
	flags.StringVar(&request.Operation, "operation", "", "only this operation; with * at the end, those that begin so")
	flags.StringVar(&since, "since", "", "not older than this: a time, or how long ago (90m, 24h)")
	flags.StringVar(&until, "until", "", "older than this: a time, or how long ago")
	flags.BoolVar(&failed, "failed", false, "only what failed or was denied")
	flags.IntVar(&limit, "limit", 100, "at most so many; 0 means all")
	return cmd
}

// auditPages reads pages until there are enough entries.
func auditPages(a *app, cmd *cobra.Command, request api.AuditRequest, limit int) (entries []api.AuditEntry, err error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	for {
		request.Limit = 1000
		if limit > 0 {
			request.Limit = min(limit-len(entries), 1000)
		}
		page, err := api.AuditList.Call(cmd.Context(), client, request)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.Items...)
		if page.Next == "" || limit > 0 && len(entries) >= limit {
			return entries, nil
		}
		request.After = page.Next
	}
}

// momentFlag reads a time, or how long ago it was.
func momentFlag(flag, text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	if back, err := time.ParseDuration(text); err == nil && back >= 0 {
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
