package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// compileOrder is whose catalogs `compile now` wants, and how it waits.
type compileOrder struct {
	api.CompileNowRequest
	noWait  bool
	timeout time.Duration
}

var compileNow = verb[compileOrder]{
	use: "now [NODE...]", short: "Want catalogs at the front of the queue, and wait for them", args: cobra.ArbitraryArgs,
	prints: results,
	long: `Want the catalogs of nodes at the front of the queue, and wait until they are there.
Named nodes go with those that an agent waits for; nodes of an environment or
condition go right behind. A catalog that stands is used again, not compiled.

The exit code is 0 when all gave a catalog, 4 when some failed, 5 when for some nodes
there is nothing to compile, 6 when it took longer than --timeout. Whoever stops
waiting stops nothing: what is wanted stays wanted.`,
	example: `  tutti compile now web-1.example.test
  tutti compile now --environment production --where 'facts.role = "web"'
  tutti compile now --environment production --no-wait`,
	flags: func(f flagSet, in *compileOrder) {
		f.StringVarP(&in.Environment, "environment", "e", "", "all nodes of this environment")
		f.StringVar(&in.Where, "where", "", "all nodes that this PQL condition holds for")
		f.BoolVar(&in.noWait, "no-wait", false, "only say what is wanted; do not wait for it")
		f.duration(&in.timeout, "timeout", 30*time.Minute, "how long to wait")
		f.completes("where", completeCondition)
	},
	run: func(ctx context.Context, c *call, in *compileOrder) error {
		in.Nodes = c.args
		chosen := in.Environment != "" || in.Where != ""
		if len(c.args) == 0 && !chosen || len(c.args) > 0 && chosen {
			return usageError{fmt.Errorf("name nodes, or give --environment or --where; usage: %s", c.cmd.UseLine())}
		}
		if _, err := readCondition(in.Where); err != nil {
			return err
		}
		return compileAll(ctx, c.app, *in)
	},
}

// awaited is compilations that somebody waits for.
type awaited struct {
	*app
	client  *api.Client
	pending map[int64]string           // what has not ended: its node
	rows    map[string]api.Compilation // by node, as they are now
	refused []api.CompileRefused
	pauses  []api.CompilePaused
}

func compileAll(ctx context.Context, a *app, order compileOrder) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	w := &awaited{app: a, client: client, pending: map[int64]string{}, rows: map[string]api.Compilation{}}
	if err := w.wantAll(ctx, order.CompileNowRequest); err != nil {
		return err
	}
	for _, p := range w.pauses {
		a.hint("%s", pauseText(p))
	}
	for _, r := range w.refused {
		a.hint("%s: nothing to compile: %s", r.Node, r.Why)
	}
	if !order.noWait {
		err = w.waitFor(ctx, order.timeout)
	}
	if err != nil {
		a.hint("What is wanted stays wanted. See it: tutti compile queue")
		return err
	}
	rows := slices.SortedFunc(maps.Values(w.rows), func(a, b api.Compilation) int { return strings.Compare(a.Node, b.Node) })
	if err := print.List(a.printer(), rows, compilationTable("Nothing is wanted.")); err != nil {
		return err
	}
	return w.verdict(order)
}

// maxNamed is how many nodes or compilations one request names.
const maxNamed = 1000

// wantAll wants everything, a part at a time.
func (w *awaited) wantAll(ctx context.Context, request api.CompileNowRequest) error {
	if len(request.Nodes) > 0 {
		for part := range slices.Chunk(request.Nodes, maxNamed) {
			if _, err := w.want(ctx, api.CompileNowRequest{Nodes: part}); err != nil {
				return err
			}
		}
		return nil
	}
	for {
		next, err := w.want(ctx, request)
		if err != nil || next == "" {
			return err
		}
		request.After = next
	}
}

func (w *awaited) want(ctx context.Context, request api.CompileNowRequest) (next string, err error) {
	answer, err := api.CompileNow.Call(ctx, w.client, request)
	if err != nil {
		return "", err
	}
	for _, c := range answer.Items {
		w.take(c)
	}
	w.refused, w.pauses = append(w.refused, answer.Refused...), answer.Pauses
	return answer.Next, nil
}

// take notes how a compilation stands, and says whether it has just failed.
func (w *awaited) take(c api.Compilation) (failed bool) {
	w.rows[c.Node] = c
	if c.State != "done" && c.State != "failed" {
		w.pending[c.ID] = c.Node
		return false
	}
	delete(w.pending, c.ID)
	return c.State == "failed"
}

// waitFor waits until all have ended, or the time is over.
func (w *awaited) waitFor(ctx context.Context, limit time.Duration) error {
	patience, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := w.wait(patience)
	if ctx.Err() == nil && errors.Is(patience.Err(), context.DeadlineExceeded) {
		return nil // the verdict says so
	}
	return err
}

// wait looks until all have ended.
func (w *awaited) wait(ctx context.Context) error {
	view := newCompileView(w.app)
	defer view.close()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for len(w.pending) > 0 {
		view.draw(w.standing())
		if err := w.look(ctx, view); err != nil {
			return err
		}
		if len(w.pending) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// look asks how those stand that were wanted first. One that is gone was folded into
// another of its node: that one is wanted instead.
func (w *awaited) look(ctx context.Context, view *compileView) error {
	ids := slices.Sorted(maps.Keys(w.pending))
	ids = ids[:min(maxNamed, len(ids))]
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	page, err := api.CompileList.Call(ctx, w.client, api.CompileListRequest{IDs: strings.Join(texts, ","), Limit: maxNamed})
	if err != nil {
		return err
	}
	there := map[int64]bool{}
	for _, c := range page.Items {
		there[c.ID] = true
		if w.take(c) {
			view.note(c.Node + ": " + compilationError(c))
		}
	}
	var gone []string
	for _, id := range ids {
		if !there[id] {
			gone = append(gone, w.pending[id])
			delete(w.rows, w.pending[id])
			delete(w.pending, id)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	_, err = w.want(ctx, api.CompileNowRequest{Nodes: gone})
	return err
}

func (w *awaited) standing() string {
	done := len(w.rows) - len(w.pending)
	return fmt.Sprintf("%s %d of %d compiled", bar(done, len(w.rows)), done, len(w.rows))
}

// verdict is nil when all gave a catalog.
func (w *awaited) verdict(order compileOrder) error {
	failed := 0
	for _, c := range w.rows {
		if c.State == "failed" {
			failed++
		}
	}
	switch {
	case failed > 0:
		return jobOutcome{exitSomeFailed, fmt.Sprintf("%d of %s could not be compiled; see: tutti compile show NODE", failed, fault.Count(len(w.rows), "catalog"))}
	case len(w.pending) > 0 && !order.noWait:
		return jobOutcome{exitLate, fmt.Sprintf("%d of %s not compiled after %s; what is missing stays wanted: tutti compile queue",
			len(w.pending), fault.Count(len(w.rows), "catalog"), print.Duration(order.timeout))}
	case len(w.refused) > 0:
		return jobOutcome{exitRefused, fmt.Sprintf("for %d of %s there is nothing to compile", len(w.refused), fault.Count(len(w.refused)+len(w.rows), "node"))}
	}
	return nil
}

// compileView shows how it goes on: a line that is written over on a terminal,
// elsewhere a line every 30 seconds.
type compileView struct {
	out   io.Writer
	live  bool
	drawn time.Time
}

func newCompileView(a *app) *compileView {
	if a.quiet {
		return &compileView{out: io.Discard, drawn: time.Now()}
	}
	return &compileView{out: a.system.Err, live: a.system.animates(), drawn: time.Now()}
}

func (v *compileView) draw(text string) {
	switch {
	case v.live:
		_, _ = fmt.Fprint(v.out, "\r\x1b[2K"+text)
	case time.Since(v.drawn) >= 30*time.Second:
		v.drawn = time.Now()
		_, _ = fmt.Fprintln(v.out, text)
	}
}

func (v *compileView) note(text string) {
	if v.live {
		_, _ = fmt.Fprint(v.out, "\r\x1b[2K")
	}
	_, _ = fmt.Fprintln(v.out, print.OneLine(text))
}

func (v *compileView) close() {
	if v.live {
		_, _ = fmt.Fprint(v.out, "\r\x1b[2K")
	}
}
