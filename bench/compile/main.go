// Compile measures what a catalog costs: Tutti's workers against Debian's Puppet
// Server, same code, same facts, same load. Method and figures: docs/benchmarks.md.
//
//	go run ./bench/compile [-only tutti,puppetserver,tracking,cell] [-catalogs 200,100,50]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/bench/internal/catalogrequest"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

const moduleDir = "/usr/share/puppet/modules"

// settings are the knobs; they go into the report as they were.
type settings struct {
	Only        string `json:"only"`
	Environment string `json:"environment"`
	Facts       string `json:"facts"`
	Sizes       string `json:"sizes"` // that servers are measured with
	Ruby        string `json:"ruby"`  // of Tutti's compilers; empty: the one that a server finds
	Concurrency int    `json:"concurrency"`
	JRubies     int    `json:"jrubies"`
	Heap        string `json:"heap"`
	WarmPeer    int    `json:"warm_peer"`  // compiles of each size before the measuring
	WarmTutti   int    `json:"warm_tutti"` // the same
	Tracked     int    `json:"tracked"`    // pairs of each size, with inputs noted and without
	Celled      int    `json:"celled"`     // pairs of each size, in a cell and without
	Catalogs    int    `json:"catalogs"`   // measured for medium; twice as many small, half as many large

	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.StringVar(&s.Only, "only", "tutti,puppetserver,tracking,cell", "servers to measure, and what noting inputs and cells cost")
	flag.StringVar(&s.Environment, "environment", "internal/compiler/ruby/testdata/bench", "environment directory to compile")
	flag.StringVar(&s.Facts, "facts", "internal/compiler/ruby/testdata/facts/debian12.json", "facts of a node")
	flag.StringVar(&s.Sizes, "sizes", "small,medium,large", "sizes of catalogs that servers are measured with")
	flag.StringVar(&s.Ruby, "ruby", "", "the Ruby, with Puppet, of Tutti's compilers (default: what a server finds by itself)")
	flag.IntVar(&s.Concurrency, "concurrency", 2, "requests under way at a time")
	flag.IntVar(&s.JRubies, "jrubies", 2, "Puppet Server's interpreters")
	flag.StringVar(&s.Heap, "heap", "1g", "Puppet Server's Java heap (Debian's default is 1g)")
	flag.IntVar(&s.WarmPeer, "warm-peer", 80, "compiles of each size before Puppet Server is measured")
	flag.IntVar(&s.WarmTutti, "warm-tutti", 10, "compiles of each size before Tutti is measured")
	flag.IntVar(&s.Catalogs, "catalogs", 100, "medium catalogs to measure (twice as many small, half as many large)")
	flag.IntVar(&s.Tracked, "tracked", 60, "pairs of catalogs of each size to measure input tracking with")
	flag.IntVar(&s.Celled, "celled", 60, "pairs of catalogs of each size to measure cells with")
	s.Flags(30*time.Minute, "the servers' files and logs")
	flag.Parse()
	s.Main("compile", s.run)
}

func (s settings) run(ctx context.Context, dir string) error {
	facts, err := catalogrequest.Read(s.Facts)
	if err != nil {
		return err
	}
	environment := filepath.Join(dir, "environments", "production")
	if err := rivals.CopyTree(s.Environment, environment); err != nil {
		return fmt.Errorf("copy the environment: %w", err)
	}
	if _, err := os.Stat(filepath.Join(moduleDir, "apache")); err != nil {
		return &rivals.MissingError{
			Program: "the Puppet module apache",
			Install: "apt-get install --no-install-recommends puppet-module-puppetlabs-apache puppet-module-puppetlabs-mysql " +
				"puppet-module-puppetlabs-ntp puppet-module-puppetlabs-concat puppet-module-puppetlabs-stdlib",
		}
	}
	report := &measure.Report{Name: "compile", Time: time.Now().UTC(), Machine: measure.ThisMachine(), Settings: s}
	for name := range strings.SplitSeq(s.Only, ",") {
		if name == "tracking" || name == "cell" {
			rows, notes, err := s.overhead(ctx, name, filepath.Join(dir, name), facts)
			report.Rows, report.Notes = append(report.Rows, rows...), append(report.Notes, notes...)
			if err != nil {
				return report.Incomplete(os.Stdout, columns, err)
			}
			continue
		}
		rows, note, err := s.server(ctx, name, filepath.Join(dir, name), environment, facts)
		report.Rows = append(report.Rows, rows...)
		report.Notes = append(report.Notes, note)
		if err != nil {
			return report.Incomplete(os.Stdout, columns, fmt.Errorf("%s: %w", name, err))
		}
	}
	return finish(report, s.Out)
}

// overhead measures what a part of a compilation costs.
func (s settings) overhead(ctx context.Context, part, dir string, facts catalogrequest.Facts) ([]measure.Row, []string, error) {
	if part == "cell" {
		return s.cells(ctx, dir, s.Environment, facts)
	}
	return s.tracking(ctx, dir, s.Environment)
}

// server starts one of the two, warms and measures it, and stops it.
func (s settings) server(ctx context.Context, name, dir, environment string, facts catalogrequest.Facts) (_ []measure.Row, note string, err error) {
	target, warm, err := s.start(ctx, name, dir, environment)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if stop := target.Stop(); err == nil {
			err = stop
		}
	}()
	note = fmt.Sprintf("%s is version %s, warmed with %d compiles of each size", name, target.Version(ctx), warm)
	b := &bench{target: target, facts: facts, concurrency: s.Concurrency, sizes: s.Sizes}
	rows, err := b.all(ctx, warm, s.Catalogs)
	return rows, note, err
}

func (s settings) start(ctx context.Context, name, dir, environment string) (rivals.Target, int, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, 0, err
	}
	switch name {
	case "puppetserver":
		target, err := rivals.StartPuppetserver(ctx, rivals.PuppetserverConfig{
			Dir: dir, EnvironmentPath: filepath.Dir(environment), BaseModulePath: moduleDir, JRubies: s.JRubies, Heap: s.Heap,
		})
		return target, s.WarmPeer, err
	case "tutti":
		binary, err := rivals.BuildTutti(ctx, dir)
		if err != nil {
			return nil, 0, err
		}
		args := []string{"--reuse-catalogs=false", "--verify-share=off", "--verify-after-deploy=0"} // see bench-verify
		if s.Ruby != "" {
			args = append(args, "--ruby", s.Ruby)
		}
		target, err := rivals.StartTutti(ctx, binary, dir, args...)
		if err != nil {
			return nil, 0, err
		}
		if err := target.Deploy(ctx, "production", environment, moduleDir); err != nil {
			_ = target.Stop()
			return nil, 0, err
		}
		return target, s.WarmTutti, nil
	default:
		return nil, 0, fmt.Errorf("no such server; have tutti, puppetserver")
	}
}

func finish(report *measure.Report, out string) error {
	var aims []measure.Aim
	for _, size := range sizes {
		aims = append(aims,
			measure.Aim{Case: size.name, Figure: "catalogs_per_cpu_s", Peer: "puppetserver", Min: 3},
			measure.Aim{Case: size.name, Figure: "p50_ms", Peer: "puppetserver"},
			measure.Aim{Case: size.name, Figure: "p99_ms", Peer: "puppetserver"},
			measure.Aim{Case: size.name, Figure: "pss_peak_mb", Peer: "puppetserver", Max: 0.333},
		)
	}
	report.Ratios = measure.Compare(report.Rows, "tutti", aims)
	return report.Finish(os.Stdout, columns, out)
}
