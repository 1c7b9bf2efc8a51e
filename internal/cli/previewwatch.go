package cli

import (
	"context"
	"errors"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
)

var previewWatch = verb[previewPrinting]{
	use: "watch PREVIEW", short: "Follow a preview until it is ready, then print what it would change",
	long: `Follow a preview until it is ready, then print what it would change, as preview show does. Changes are named on standard error as they
are found, the first of them before all nodes are known. Ctrl-C leaves the preview working.

` + previewExits,
	example: "  tutti preview watch 3",
	flags:   func(f flagSet, in *previewPrinting) { in.flags(f) },
	run: func(ctx context.Context, c *call, in *previewPrinting) error {
		client, err := c.client()
		if err == nil {
			err = in.check(c.app)
		}
		if err == nil { // a stream is connected to again and again: that there is none, or no server, is said at once
			_, err = api.PreviewNodes.Call(ctx, client, api.PreviewNodesRequest{Preview: c.args[0], Limit: 1})
		}
		if err == nil {
			err = awaitPreview(ctx, c.app, client, c.args[0])
		}
		if err != nil {
			return err
		}
		return printPreview(ctx, c.app, client, c.args[0], *in)
	},
}

// What is said of a preview that somebody waits for.
const (
	progressEvery = 5 * time.Second
	namedChanges  = 20 // are named when they are found
)

// awaitPreview follows a preview until it has ended, and tells how it goes.
func awaitPreview(ctx context.Context, a *app, client *api.Client, id string) error {
	w := previewWaiter{app: a, told: time.Now(), named: map[string]bool{}}
	err := client.FollowPreview(ctx, id, w.heard, func(err error) { a.hint("%s; the preview goes on, trying again", explain(err)) }, func() {
		a.hint("connected again")
	})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		a.hint("The preview goes on. Come back with: tutti preview watch %s", id)
	}
	return err
}

// previewWaiter is somebody who waits for a preview.
type previewWaiter struct {
	*app
	told  time.Time
	named map[string]bool // changes that were named
}

func (w *previewWaiter) heard(e api.PreviewEvent) error {
	if e.Preview.State != "compiling" { // all of it is printed now
		return nil
	}
	for _, kind := range diff.Kinds(e.Changes) {
		text := kind.Text()
		if kind.OrderOnly || w.named[text] || len(w.named) == namedChanges {
			continue
		}
		w.named[text] = true
		w.hint("  found: %s", text)
	}
	if time.Since(w.told) > progressEvery {
		w.told = time.Now()
		w.hint("  %d of %s known: %s", e.Preview.Nodes-e.Preview.Counts["waiting"], fault.Count(e.Preview.Nodes, "node"), standingText(e.Preview))
	}
	return nil
}
