package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// server is a peer that is loaded and can be asked.
type server interface {
	rivals.Target
	conn(ctx context.Context) (*load.Conn, http.Header, error)
}

// outcome is all that one server gave.
type outcome struct {
	name    string
	rows    []measure.Row
	answers map[string]answer
	notes   []string
}

var columns = []string{"rows", "p50_ms", "p99_ms", "first_ms", "kb", "load_s", "disk_mb", "pss_mb", "rss_mb"}

func (s settings) all(ctx context.Context, dir string) error {
	report := &measure.Report{Name: "query", Time: time.Now().UTC(), Machine: measure.ThisMachine(), Settings: s}
	var outcomes []outcome
	for name := range strings.SplitSeq(s.Peers, ",") {
		o, err := s.peer(ctx, name, filepath.Join(dir, name))
		report.Rows = append(report.Rows, o.rows...)
		report.Notes = append(report.Notes, o.notes...)
		outcomes = append(outcomes, o)
		if err != nil {
			return report.Incomplete(os.Stdout, columns, fmt.Errorf("%s: %w", name, err))
		}
	}
	if s.loadOnly {
		return nil
	}
	report.Notes = append(report.Notes, disagreements(outcomes)...)
	for _, o := range outcomes {
		if o.name != puppetdb {
			report.Ratios = append(report.Ratios, ratios(report.Rows, o.name)...)
		}
	}
	return report.Finish(os.Stdout, columns, s.out)
}

// peer loads one server unless that was done before, and asks it everything.
func (s settings) peer(ctx context.Context, name, dir string) (o outcome, err error) {
	o = outcome{name: name, answers: map[string]answer{}}
	if err := os.MkdirAll(dir, 0o711); err != nil { //nolint:gosec // PostgreSQL's user must pass through
		return o, err
	}
	l, err := s.openLoaded(dir)
	if err != nil {
		return o, err
	}
	p, err := s.start(ctx, name, dir, l)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if s.loadOnly {
		return o, nil
	}
	if err := s.askAll(ctx, p, l, &o); err != nil {
		return o, err
	}
	disk, err := diskBytes(dir)
	if err != nil {
		return o, err
	}
	usage, err := p.Usage()
	o.rows = append(o.rows, measure.Row{Server: name, Case: "loaded", Figures: map[string]float64{
		"rows": float64(l.Nodes), "load_s": l.seconds(), "disk_mb": mb(disk), "pss_mb": mb(usage.PSSBytes), "rss_mb": mb(usage.RSSBytes),
	}})
	o.notes = append(o.notes, name+" is version "+p.Version(ctx))
	return o, err
}

func (s settings) start(ctx context.Context, name, dir string, l *loaded) (server, error) {
	switch name {
	case tuttiSQLite, tuttiPostgres:
		return s.startTutti(ctx, name, dir, l)
	case puppetdb:
		p, err := s.startPuppetDB(ctx, dir)
		if err != nil {
			return nil, err
		}
		if err := l.fill(ctx, name, s.Workers, p); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
		if err := p.Postgres().Analyze(ctx, "puppetdb"); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
		return p, nil
	default:
		return nil, errNoPeer
	}
}

func (s settings) askAll(ctx context.Context, p server, l *loaded, o *outcome) error {
	conn, header, err := p.conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, q := range l.questions() {
		if !strings.Contains(q.name, s.Only) {
			continue
		}
		a, err := s.ask(ctx, conn, header, q)
		if err != nil {
			return err
		}
		if q.loose {
			a.digest = ""
		}
		o.answers[q.name] = a
		if a.failed != "" {
			o.notes = append(o.notes, fmt.Sprintf("%s does not answer %s: %s", p.Name(), q.name, a.failed))
			continue
		}
		fmt.Fprintf(os.Stderr, "%s: %s: %d rows, p50 %.1f ms, p99 %.1f ms\n", p.Name(), q.name, a.rows, ms(a.latency.P50), ms(a.latency.P99))
		o.rows = append(o.rows, measure.Row{Server: p.Name(), Case: q.name, Figures: map[string]float64{
			"rows": float64(a.rows), "p50_ms": ms(a.latency.P50), "p99_ms": ms(a.latency.P99), "first_ms": ms(a.first), "kb": float64(a.bytes) / 1000,
		}})
	}
	return nil
}

// disagreements says where servers gave different answers.
func disagreements(outcomes []outcome) []string {
	var notes []string
	for i, o := range outcomes {
		for _, other := range outcomes[:i] {
			for name, a := range o.answers {
				b, asked := other.answers[name]
				if !asked || a.failed != "" || b.failed != "" || a.rows == b.rows && a.digest == b.digest {
					continue
				}
				notes = append(notes, fmt.Sprintf("ANSWERS DIFFER: %s: %s gives %d rows (%s), %s %d (%s)", name, other.name, b.rows, b.digest, o.name, a.rows, a.digest))
			}
		}
	}
	return notes
}

func ratios(rows []measure.Row, name string) []measure.Ratio {
	aims := []measure.Aim{
		{Case: "loaded", Figure: "pss_mb", Peer: puppetdb, Max: 0.2},
		{Case: "loaded", Figure: "disk_mb", Peer: puppetdb},
		{Case: "loaded", Figure: "load_s", Peer: puppetdb},
	}
	for _, row := range rows {
		if row.Server == name && row.Case != "loaded" {
			aims = append(aims, measure.Aim{Case: row.Case, Figure: "p50_ms", Peer: puppetdb, Max: 1})
		}
	}
	return measure.Compare(rows, name, aims)
}

// diskBytes is what the files of a directory take, without logs and programs.
func diskBytes(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was a temporary file of the server
		}
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".log") || path == filepath.Join(dir, "tutti") {
			return err
		}
		if info, err := entry.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum, err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
func mb(n int64) float64         { return float64(n) / 1e6 }
