package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var releaseWatch = verb[api.Nothing]{
	use: "watch RELEASE", short: "Follow a release until it has ended, or waits for somebody",
	long: "Follow a release until it has ended, or is paused or waits for an approval, and print what became of its nodes. Ctrl-C leaves it going on.\n\n" +
		releaseExits,
	example: "  tutti release watch 7",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		client, err := c.client()
		if err != nil {
			return err
		}
		// A server that is away is asked again and again. One that was never there is said at once.
		if _, err := api.ReleaseShow.Call(ctx, client, api.ReleaseShowRequest{Release: c.args[0]}); err != nil {
			return err
		}
		return watchRelease(ctx, c.app, client, c.args[0])
	},
}

// releaseWatcher follows a release.
type releaseWatcher struct {
	*app
	client *api.Client
	id     string
	view   *releaseView
	seen   int64           // revision up to which targets were looked at
	told   int             // entries that were told, or fromNow
	final  map[string]bool // nodes whose end was told
}

// fromNow leaves out what a release's entries say before it is followed.
const fromNow = -1

// watchRelease follows a release to its end, or to where it waits for somebody, prints how it stands, and says by its error whether
// all went well.
func watchRelease(ctx context.Context, a *app, client *api.Client, id string) error {
	w := watcherOfRelease(a, client, id)
	r, err := w.followed(ctx)
	if err != nil {
		return err
	}
	if err := w.conclude(r); err != nil {
		return err
	}
	for _, line := range spared(r.Release) {
		a.hint("  %s", line)
	}
	return releaseVerdict(r.Release)
}

func watcherOfRelease(a *app, client *api.Client, id string) *releaseWatcher {
	return &releaseWatcher{app: a, client: client, id: id, view: &releaseView{app: a}, final: map[string]bool{}}
}

// followed is follow, and tells who leaves how to come back.
func (w *releaseWatcher) followed(ctx context.Context) (api.ReleaseReport, error) {
	r, err := w.follow(ctx)
	if errors.Is(err, context.Canceled) {
		w.hint("Release %s goes on. Watch it again: tutti release watch %s", w.id, w.id)
	}
	return r, err
}

// conclude prints how the release stands.
func (w *releaseWatcher) conclude(r api.ReleaseReport) error {
	if w.printer().ForPrograms() {
		return w.printer().Thing(r)
	}
	return w.printer().Linef("Release %s: %s", r.ID, releaseSummary(r.Release))
}

func (w *releaseWatcher) follow(ctx context.Context) (r api.ReleaseReport, err error) {
	for misses := 0; ; { // of its own: what is missing in an answer must not stay from the one before
		now, err := api.ReleaseShow.Call(ctx, w.client, api.ReleaseShowRequest{Release: w.id, Behind: int(r.Revision)})
		if err == nil {
			r = now
			err = w.targets(ctx)
		}
		switch {
		case err == nil:
			misses = 0
		case ctx.Err() != nil:
			return r, ctx.Err()
		case misses < maxMisses && (errors.Is(err, api.ErrUnreachable) || fault.Of(err) == fault.Unavailable):
			if misses++; misses == 1 {
				w.view.note(explain(err) + "; the release goes on, trying again")
			}
			select {
			case <-ctx.Done():
				return r, ctx.Err()
			case <-time.After(time.Second):
			}
			continue
		default:
			return r, err
		}
		if w.told == fromNow {
			w.told = len(r.Entries)
		}
		for _, e := range r.Entries[min(w.told, len(r.Entries)):] {
			w.view.note(print.OneLine(e.Text))
		}
		w.told = len(r.Entries)
		w.view.draw(r.Release)
		if r.State != "running" && r.State != "stopping" && (r.State != "paused" || settled(r.Release)) {
			return r, nil
		}
	}
}

// maxMisses is how often a server that does not answer is asked again, a second apart.
const maxMisses = 120

// settled says whether nothing of a paused release goes on; one that is frozen goes on by itself, but nobody waits for that.
func settled(r api.Release) bool { return r.Counts["applying"]+r.Counts["sent"] == 0 }

// targets tells of nodes that have ended since the last look.
func (w *releaseWatcher) targets(ctx context.Context) error {
	seen, ended := w.seen, []api.ReleaseTarget(nil)
	for after := ""; ; {
		page, err := api.ReleaseTargets.Call(ctx, w.client, api.ReleaseTargetsRequest{
			Release: w.id, Since: int(w.seen), After: after, Limit: pageSize, State: "changed,ok,failed,foreign,timed_out,offline,skipped,superseded,refused",
		})
		if err != nil {
			return err
		}
		for _, t := range page.Items {
			if seen = max(seen, t.Revision); !w.final[t.Name+t.State] {
				w.final[t.Name+t.State] = true
				ended = append(ended, t)
			}
		}
		if after = page.Next; after == "" {
			w.seen = seen
			w.view.ended(ended)
			return nil
		}
	}
}

// releaseView shows a release on standard error: lines that are written over on a terminal, plain lines elsewhere.
type releaseView struct {
	*app
	live *liveProgress
	last time.Time
}

func (v *releaseView) terminal() *liveProgress {
	if v.live == nil && !v.quiet && v.system.animates() {
		v.live = &liveProgress{out: v.system.Err, width: v.system.ErrWidth, colours: v.coloured(v.system.animates())}
	}
	return v.live
}

func (v *releaseView) note(text string) {
	if live := v.terminal(); live != nil {
		live.note(text)
		return
	}
	v.hint("%s", text)
}

// ended tells of targets that ended since the last look: those that ended alike, in a line.
func (v *releaseView) ended(targets []api.ReleaseTarget) {
	live := v.terminal()
	for len(targets) > 0 {
		first := targets[0]
		var names []string
		targets = slices.DeleteFunc(targets, func(t api.ReleaseTarget) bool {
			alike := t.State == first.State && t.Reason == first.Reason
			if alike {
				names = append(names, t.Name)
			}
			return alike
		})
		line := someNames(names, namedEnds) + ": " + stateText(first.State)
		if first.Reason != "" {
			line += ": " + print.OneLine(first.Reason)
		}
		switch {
		case live == nil:
			v.hint("%s", line)
		case first.State != "ok" && first.State != "changed":
			live.failed(line)
		}
	}
}

// namedEnds is how many nodes are named that ended alike at the same time.
const namedEnds = 4

// plainEvery is how often a plain line says how a release stands.
const plainEvery = 30 * time.Second

func (v *releaseView) draw(r api.Release) {
	done := r.Nodes - r.Counts["waiting"] - r.Counts["sent"] - r.Counts["applying"]
	text := fmt.Sprintf("Release %s %s: wave %d of %d, %d of %d done (%s)", r.ID, stateText(r.State), r.Wave, len(r.Waves), done, r.Nodes, releaseCounts(r.Counts))
	if live := v.terminal(); live != nil {
		live.drawLine(bar(done, r.Nodes) + " " + text)
		return
	}
	if v.last.IsZero() {
		v.last = time.Now()
	}
	if time.Since(v.last) >= plainEvery {
		v.last = time.Now()
		v.hint("%s", text)
	}
}

// spared says in numbers what a release that is paused has left alone so far, and how one that waits for somebody goes on.
func spared(r api.Release) (lines []string) {
	if r.State != "paused" {
		return nil
	}
	if n := r.Counts["waiting"]; n > 0 {
		lines = append(lines, "not touched: "+fault.Count(n, "node")+", in waves that have not begun")
	}
	if n := r.Counts["skipped"]; n > 0 {
		lines = append(lines, fmt.Sprintf("not run: %s of wave %d, which got back what they had", fault.Count(n, "node"), r.Wave))
	}
	if r.Hold == "promotion" {
		lines = append(lines, fmt.Sprintf("the next wave begins with: tutti release promote %s; or give up: tutti release abort %s", r.ID, r.ID))
	}
	return lines
}

// missed is the flag that chooses the nodes that do not have their catalogs.
func missed(counts map[string]int) string {
	var states []string
	for _, state := range []string{"failed", "foreign", "timed_out", "offline", "skipped", "superseded", "refused"} {
		if counts[state] > 0 {
			states = append(states, state)
		}
	}
	if len(states) == 0 {
		return ""
	}
	return " --state " + strings.Join(states, ",")
}

// releaseVerdict is nil for a release whose nodes all have their catalogs.
func releaseVerdict(r api.Release) error {
	c := r.Counts
	failed, late, refused := c["failed"]+c["foreign"], c["timed_out"]+c["offline"], c["superseded"]+c["refused"]
	text := fmt.Sprintf("release %s is %s", r.ID, stateText(r.State))
	if r.Reason != "" {
		text += ": " + print.OneLine(r.Reason)
	}
	next := "; see: tutti release nodes " + r.ID + missed(c)
	switch {
	case r.State == "done":
		return nil
	case r.State == "waiting_approval":
		return jobOutcome{exitRefused, text + "; then: tutti release approve " + r.ID}
	case r.State == "paused" && r.Hold == "promotion":
		return nil
	case r.State == "paused" && (r.Hold == "freeze" || r.Hold == "policy"):
		return jobOutcome{exitRefused, text}
	case r.State == "paused":
		return jobOutcome{exitSomeFailed, text + next + fmt.Sprintf("; then: tutti release resume %s, or abort %s, or tutti rollback --release %s", r.ID, r.ID, r.ID)}
	case r.State == "aborted" && c["changed"] > 0:
		return jobOutcome{exitSomeFailed, text + next + "; what it changed is taken back by: tutti rollback --release " + r.ID}
	case r.State == "aborted":
		return jobOutcome{exitSomeFailed, text + next}
	case failed > 0:
		return jobOutcome{exitSomeFailed, text + next}
	case refused > 0 && late == 0:
		return jobOutcome{exitRefused, text + next}
	case late > 0 && refused == 0:
		return jobOutcome{exitLate, text + next}
	}
	return jobOutcome{exitSomeFailed, text + next}
}
