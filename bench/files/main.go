// Files measures serving file content: one large file and many small ones, 16
// clients, Tutti against Debian's Puppet Server and nginx. Method and figures:
// docs/benchmarks.md.
//
//	go run ./bench/files [-only tutti,nginx,puppetserver] [-for 10s]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

const moduleDir = "/usr/share/puppet/modules"

// settings are the knobs; they go into the report as they were.
type settings struct {
	Only       string        `json:"only"`
	Clients    int           `json:"clients"`
	BigBytes   int64         `json:"big_bytes"`
	Files      int           `json:"files"`
	FileBytes  int64         `json:"file_bytes"`
	For        time.Duration `json:"for_ns"`
	Heap       string        `json:"heap"`
	JRubies    int           `json:"jrubies"`
	WarmSmall  int           `json:"warm_small"`
	WarmPeer   int           `json:"warm_puppetserver"`
	RandomSeed uint64        `json:"seed"`

	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.StringVar(&s.Only, "only", "tutti,nginx,puppetserver", "servers to measure")
	flag.IntVar(&s.Clients, "clients", 16, "connections, each with one request at a time")
	flag.Int64Var(&s.BigBytes, "big", 100_000_000, "bytes of the large file")
	flag.IntVar(&s.Files, "files", 10_000, "number of small files")
	flag.Int64Var(&s.FileBytes, "size", 10_000, "bytes of a small file")
	flag.DurationVar(&s.For, "for", 10*time.Second, "time for each case; requests under way are finished")
	flag.StringVar(&s.Heap, "heap", "1g", "Puppet Server's Java heap (Debian's default is 1g)")
	flag.IntVar(&s.JRubies, "jrubies", 2, "Puppet Server's interpreters")
	flag.IntVar(&s.WarmSmall, "warm", 2000, "small files fetched before the measuring")
	flag.IntVar(&s.WarmPeer, "warm-puppetserver", 2000, "the same for Puppet Server")
	flag.Uint64Var(&s.RandomSeed, "seed", 1, "of the files' content")
	s.Flags(20*time.Minute, "the servers' files and logs")
	flag.Parse()
	s.Main("files", s.run)
}

func (s settings) run(ctx context.Context, dir string) error {
	environment := filepath.Join(dir, "environments", "production")
	if err := s.makeFiles(environment); err != nil {
		return fmt.Errorf("make files: %w", err)
	}
	report := &measure.Report{Name: "files", Time: time.Now().UTC(), Machine: measure.ThisMachine(), Settings: s}
	for name := range strings.SplitSeq(s.Only, ",") {
		rows, note, err := s.server(ctx, name, filepath.Join(dir, name), environment)
		report.Rows = append(report.Rows, rows...)
		report.Notes = append(report.Notes, note)
		if err != nil {
			return report.Incomplete(os.Stdout, columns, fmt.Errorf("%s: %w", name, err))
		}
	}
	report.Ratios = measure.Compare(report.Rows, "tutti", aims())
	return report.Finish(os.Stdout, columns, s.Out)
}

// server starts one of the three, measures each case, and stops it.
func (s settings) server(ctx context.Context, name, dir, environment string) (_ []measure.Row, note string, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, "", err
	}
	target, routes, err := s.start(ctx, name, dir, environment)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if stop := target.Stop(); err == nil {
			err = stop
		}
	}()
	b := &bench{settings: s, target: target}
	var rows []measure.Row
	for _, route := range routes {
		for _, run := range []measurement{b.small, b.big} {
			row, err := run(ctx, route)
			if err != nil {
				return rows, "", err
			}
			rows = append(rows, row)
		}
	}
	return rows, fmt.Sprintf("%s is version %s, cipher %s", name, target.Version(ctx), b.cipher), nil
}

// route is one way to ask a server for a file.
type route struct {
	suffix        string // of the case's name
	before, after string // the URL around the file's path
}

// measurement is one case.
type measurement func(context.Context, route) (measure.Row, error)

const contentPrefix = "/puppet/v3/file_content/modules/blobs/"

func (s settings) start(ctx context.Context, name, dir, environment string) (rivals.Target, []route, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	content := route{before: contentPrefix, after: "?environment=production"}
	switch name {
	case "puppetserver":
		target, err := rivals.StartPuppetserver(ctx, rivals.PuppetserverConfig{
			Dir: dir, EnvironmentPath: filepath.Dir(environment), BaseModulePath: moduleDir, JRubies: s.JRubies, Heap: s.Heap,
		})
		return target, []route{content}, err
	case "nginx":
		target, err := rivals.StartNginx(ctx, dir, contentPrefix, filepath.Join(environment, "modules/blobs/files")+"/")
		return target, []route{content}, err
	case "tutti":
		target, codeID, err := startTutti(ctx, dir, environment)
		static := route{
			suffix: " static", before: "/puppet/v3/static_file_content/modules/blobs/files/",
			after: "?environment=production&code_id=" + codeID,
		}
		return target, []route{content, static}, err
	default:
		return nil, nil, fmt.Errorf("no such server; have tutti, nginx, puppetserver")
	}
}

func aims() []measure.Aim {
	var aims []measure.Aim
	for _, c := range []struct{ peerCase, figure, cost string }{
		{"small", "files_per_s", "server_cpu_ms_per_file"},
		{"big", "mb_per_s", "server_cpu_s_per_gb"},
	} {
		for _, suffix := range []string{"", " static"} {
			aims = append(aims,
				measure.Aim{Case: c.peerCase + suffix, PeerCase: c.peerCase, Figure: c.figure, Peer: "puppetserver", Min: 20},
				measure.Aim{Case: c.peerCase + suffix, PeerCase: c.peerCase, Figure: c.figure, Peer: "nginx", Min: 0.8},
				measure.Aim{Case: c.peerCase + suffix, PeerCase: c.peerCase, Figure: c.cost, Peer: "puppetserver"},
				measure.Aim{Case: c.peerCase + suffix, PeerCase: c.peerCase, Figure: c.cost, Peer: "nginx"},
			)
		}
	}
	return aims
}
