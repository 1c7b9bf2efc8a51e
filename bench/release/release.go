package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// wholeCase is all waves together, from the release's order on.
const wholeCase = "release, all waves"

// preview compiles the next edition for all nodes.
func (b *bench) preview(ctx context.Context) (measure.Row, error) {
	return b.watched(ctx, "preview", b.Nodes, func() error {
		out, err := b.tutti.Run(ctx, "preview", "create", "production", "--ref", b.edition(2), "--no-wait", "-o", "json")
		if err != nil {
			return err
		}
		var made api.Preview
		if err := json.Unmarshal(out, &made); err != nil {
			return err
		}
		if b.previewed, err = strconv.ParseInt(made.ID, 10, 64); err != nil {
			return err
		}
		return every(ctx, time.Second, func() (bool, error) {
			report, err := api.PreviewShow.Call(ctx, b.api, api.PreviewShowRequest{Preview: made.ID})
			if err != nil {
				return false, err
			}
			if report.State == "ready" && report.Counts["changed"] != b.Nodes {
				return false, fmt.Errorf("all nodes are to change: %v", report.Counts)
			}
			return report.State == "ready", nil
		})
	})
}

// release hands the preview to all nodes, wave by wave.
func (b *bench) release(ctx context.Context) (rows []measure.Row, err error) {
	watch, err := measure.Start(ctx, b.tutti.Usage)
	if err != nil {
		return nil, err
	}
	rows, made, err := b.waves(ctx)
	span, err := watch.Stop(err)
	if err != nil {
		return rows, err
	}
	whole, err := b.row(wholeCase, b.Nodes, span)
	return append(rows, whole), errors.Join(err, b.prove(ctx, made))
}

// waves makes the release and follows it.
func (b *bench) waves(ctx context.Context) (rows []measure.Row, made string, err error) {
	var report api.ReleaseReport
	none := 0
	order := api.ReleaseCreateRequest{Preview: b.previewed, ReleaseOptions: api.ReleaseOptions{Waves: strings.Split(b.Waves, ","), MaxFailures: &none}}
	row, err := b.watched(ctx, "release is made", b.Nodes, func() (err error) {
		report, err = api.ReleaseCreate.Call(ctx, b.api, order)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	rows, made = append(rows, row), report.ID
	for i, wave := range report.Waves {
		row, err := b.watched(ctx, fmt.Sprintf("wave %d (%s)", wave.Number, wave.Size), wave.Nodes, func() error { return b.wave(ctx, made, i) })
		if err != nil {
			return rows, made, err
		}
		rows = append(rows, row)
	}
	return rows, made, nil
}

// said is how often somebody who waits is told how far it is.
const said = 10 * time.Second

// wave waits until one has ended; the last one ends with its release.
func (b *bench) wave(ctx context.Context, id string, i int) error {
	next := time.Now().Add(said)
	return every(ctx, 500*time.Millisecond, func() (bool, error) {
		r, err := api.ReleaseShow.Call(ctx, b.api, api.ReleaseShowRequest{Release: id})
		if err != nil {
			return false, err
		}
		if time.Now().After(next) {
			next = time.Now().Add(said)
			fmt.Fprintf(os.Stderr, "release: %s, wave %d: %v\n", r.State, r.Wave, r.Counts)
		}
		switch r.State {
		case "running":
			return i+1 < len(r.Waves) && r.Waves[i].State == "ended", nil
		case "done":
			return true, nil
		}
		return false, fmt.Errorf("release %s is %s: %s: %v", id, r.State, r.Reason, r.Counts)
	})
}

// prove reads how each node stands: it applied what was released to it, and that once.
func (b *bench) prove(ctx context.Context, id string) error {
	seen, request := 0, api.ReleaseTargetsRequest{Release: id, Limit: 1000}
	for {
		page, err := api.ReleaseTargets.Call(ctx, b.api, request)
		if err != nil {
			return err
		}
		for _, target := range page.Items {
			applied := b.fleet.Recorder().Applied(target.Name)
			if target.State != "changed" || len(applied) != 1 || applied[0].Catalog != target.Catalog {
				return fmt.Errorf("%s is %s with %s, and applied %+v", target.Name, target.State, target.Catalog, applied)
			}
			seen++
		}
		if request.After = page.Next; page.Next == "" {
			break
		}
	}
	if seen != b.Nodes {
		return fmt.Errorf("%d of %d nodes are in the release", seen, b.Nodes)
	}
	return nil
}
