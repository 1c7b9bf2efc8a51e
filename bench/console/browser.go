package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// The cases.
const (
	previewCase = "preview that changes all"
	jobCase     = "job over all, a page shows it"
)

func listCase(nodes int) string { return fmt.Sprintf("list of %d nodes", nodes) }

// browse runs a case of console/e2e/bench.mjs in Chromium, and returns what it measured.
func (b *bench) browse(ctx context.Context, what string, more ...string) (map[string]float64, error) {
	out, err := b.tutti.Run(ctx, "console", "open", "-o", "json")
	if err != nil {
		return nil, err
	}
	var link api.LoginLink
	if err := json.Unmarshal(out, &link); err != nil {
		return nil, err
	}
	address, _, _ := strings.Cut(link.URL, "/login#")
	cmd := exec.CommandContext(ctx, "node", "bench.mjs", what) //nolint:gosec // our own words
	cmd.Dir = filepath.Join("console", "e2e")
	cmd.Env = append(os.Environ(), "TUTTI_CONSOLE="+address, "TUTTI_CONSOLE_LINK="+link.URL)
	cmd.Env = append(cmd.Env, "TUTTI_NODES="+strconv.Itoa(b.nodes), "TUTTI_VIEWS="+strconv.Itoa(b.Views))
	cmd.Env = append(cmd.Env, more...)
	var printed, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s in the browser: %w (`make console-deps` installs what it needs)\n%s", what, err, errs.String())
	}
	figures := map[string]float64{}
	if err := json.Unmarshal(printed.Bytes(), &figures); err != nil {
		return nil, fmt.Errorf("%s in the browser printed no figures: %w\n%s", what, err, printed.String())
	}
	figures["nodes"] = float64(b.nodes)
	return figures, nil
}

// serverCPU is the processor time that the server takes for each of some views, less what it takes in as long a time in which nothing is asked.
func (b *bench) serverCPU(ctx context.Context, what string) (float64, error) {
	idle, err := b.used(func() error { return measure.Settle(ctx, 10*time.Second) })
	if err != nil {
		return 0, err
	}
	viewed, err := b.used(func() error {
		_, err := b.browse(ctx, what)
		return err
	})
	if err != nil {
		return 0, err
	}
	cpu := viewed.cpu.Seconds() - idle.cpu.Seconds()*viewed.wall.Seconds()/idle.wall.Seconds()
	return max(0, cpu) * 1e3 / float64(b.Views), nil
}

// spent is what the server took during something.
type spent struct{ cpu, wall time.Duration }

func (b *bench) used(work func() error) (s spent, err error) {
	before, err := b.tutti.Usage()
	if err != nil {
		return s, err
	}
	begin := time.Now()
	if err := work(); err != nil {
		return s, err
	}
	after, err := b.tutti.Usage()
	return spent{after.Since(before).CPU, time.Since(begin)}, err
}

// list is the list of all nodes: first with an empty cache, then filtered and sorted, then again and again for the server's time.
func (b *bench) list(ctx context.Context) (measure.Row, error) {
	figures, err := b.browse(ctx, "list")
	if err != nil {
		return measure.Row{}, err
	}
	if figures["server_cpu_ms"], err = b.serverCPU(ctx, "views"); err != nil {
		return measure.Row{}, err
	}
	if figures["sorted_cpu_ms"], err = b.serverCPU(ctx, "sorted"); err != nil {
		return measure.Row{}, err
	}
	return measure.Ours(listCase(b.nodes), figures), nil
}

func (b *bench) preview(ctx context.Context) (measure.Row, error) {
	figures, err := b.browse(ctx, "preview")
	return measure.Ours(previewCase, figures), err
}

// job is a job over all nodes that is ordered in a page, and shown to its end.
func (b *bench) job(ctx context.Context) (measure.Row, error) {
	figures, _, err := measure.Watched(ctx, jobCase, b.tutti.Usage, func() (map[string]float64, error) { return b.browse(ctx, "job") })
	return measure.Ours(jobCase, figures), err
}
