package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// The cases of previews. Nothing of them is deployed.
const (
	previewRoleCase = "preview of one role"
	previewAllCase  = "preview that changes all"
)

// previewRole previews another edition of a role that no commit changed.
func (b *bench) previewRole(ctx context.Context) (measure.Row, error) {
	return b.preview(ctx, previewRoleCase, b.Nodes/b.Roles, func() error { return b.code.writeRole(0, 3) })
}

// previewAll previews a file more on every node.
func (b *bench) previewAll(ctx context.Context) (measure.Row, error) {
	return b.preview(ctx, previewAllCase, b.Nodes, func() error {
		return b.code.write("manifests/site.pp", siteManifest+"file { '/etc/fleet-more': content => \"${facts['networking']['hostname']}\\n\" }\n")
	})
}

// preview measures from the preview's own time until its first change is known and until it is
// ready. It fails unless exactly so many nodes change.
func (b *bench) preview(ctx context.Context, name string, changed int, edit func() error) (measure.Row, error) {
	if err := edit(); err != nil {
		return measure.Row{}, err
	}
	before, err := b.figures(ctx)
	if err != nil {
		return measure.Row{}, err
	}
	watch, err := measure.Start(ctx, b.tutti.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	report, first, ready, err := b.previewed(ctx)
	span, err := watch.Stop(err)
	if err != nil {
		return measure.Row{}, err
	}
	now, err := b.figures(ctx)
	if err != nil {
		return measure.Row{}, err
	}
	if report.Counts["changed"] != changed || report.Counts["changed"]+report.Counts["same"] != b.Nodes {
		return measure.Row{}, fmt.Errorf("%s: %d nodes are to change and the others not: %+v", name, changed, report.Counts)
	}
	fmt.Fprintf(os.Stderr, "%s: ready after %.1f s\n", name, ready.Seconds())
	return measure.Row{Server: "tutti", Case: name, Figures: map[string]float64{
		"nodes": float64(b.Nodes), "touched": float64(report.Counts["changed"]), "compiled": now["tutti_compile_done_total"] - before["tutti_compile_done_total"],
		"known_s": first.Seconds(), "current_s": ready.Seconds(),
		"server_cpu_s": span.Server.Seconds(), "cpu_ms_each": 1000 * span.Server.Seconds() / float64(b.Nodes),
		"server_cores": span.Cores(span.Server), "client_cores": span.Cores(span.Clients), "others_cores": span.Cores(span.Others),
		"peak_rss_mb":   float64(span.PeakRSS) / 1e6,
		"server_rss_mb": float64(span.RootRSS) / 1e6, "compile_pss_mb": float64(span.RestPSS) / 1e6,
	}}, nil
}

// previewed previews the code and waits for it.
func (b *bench) previewed(ctx context.Context) (report api.Preview, first, ready time.Duration, err error) {
	out, err := b.tutti.Run(ctx, "preview", "create", "production", "--ref", b.code.dir, "--base-module-path", moduleDir, "--no-wait", "-o", "json")
	if err != nil {
		return report, 0, 0, err
	}
	var made api.Preview
	if err := json.Unmarshal(out, &made); err != nil {
		return report, 0, 0, err
	}
	client, err := b.client()
	if err != nil {
		return report, 0, 0, err
	}
	var lost error
	err = client.FollowPreview(ctx, made.ID, func(e api.PreviewEvent) error {
		ready = time.Since(made.CreatedAt)
		if first == 0 && len(e.Changes) > 0 {
			first = ready
		}
		report = e.Preview
		return nil
	}, func(err error) { lost = err }, func() {})
	if err == nil {
		err = lost
	}
	if err == nil && report.State != "ready" {
		err = fmt.Errorf("the preview is %s: %s", report.State, report.Reason)
	}
	return report, first, ready, err
}

// client asks as the administrator.
func (b *bench) client() (*api.Client, error) {
	ca, err := os.ReadFile(filepath.Clean(b.tutti.CAPath()))
	if err != nil {
		return nil, err
	}
	return api.NewClient(api.ClientConfig{Server: b.tutti.LocalhostURL(), Token: b.token, CAPEM: ca})
}
