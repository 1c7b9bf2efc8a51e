// Checkin measures what it costs that a node asks for its catalog when nothing
// changed: against a compilation of the same catalog here and in Debian's Puppet
// Server; and whether thousands at once are served. Method and figures:
// docs/benchmarks.md.
//
//	go run ./bench/checkin [-only tutti,puppetserver,storm] [-agents 5000] [-within 5s]
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
	Only        string  `json:"only"`
	Environment string  `json:"environment"`
	Facts       string  `json:"facts"`
	CheckIns    int     `json:"check_ins"` // of each size, over one connection and over new ones
	Compiles    int     `json:"compiles"`  // of each size
	WarmTutti   int     `json:"warm_tutti"`
	WarmPeer    int     `json:"warm_peer"`
	Heap        string  `json:"heap"`
	Agents      int     `json:"agents"`    // of the storm
	Resources   int     `json:"resources"` // of each one's catalog
	Within      string  `json:"within"`    // when the storm's check-ins begin
	FileBytes   int     `json:"file_bytes"`
	FileClients int     `json:"file_clients"`
	FileRate    float64 `json:"file_rate"` // files a second that they want together

	within       time.Duration
	rivals.Knobs `json:"-"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == fetcherWord {
		if err := fetchFiles(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "fetch files:", err)
			os.Exit(1)
		}
		return
	}
	var s settings
	flag.StringVar(&s.Only, "only", "tutti,puppetserver,storm", "what to measure")
	flag.StringVar(&s.Environment, "environment", "internal/compiler/ruby/testdata/bench", "environment directory to compile")
	flag.StringVar(&s.Facts, "facts", "internal/compiler/ruby/testdata/facts/debian12.json", "facts of a node")
	flag.IntVar(&s.CheckIns, "check-ins", 400, "check-ins of each size to measure")
	flag.IntVar(&s.Compiles, "compiles", 20, "compilations of each size to measure")
	flag.IntVar(&s.WarmTutti, "warm-tutti", 6, "compilations of each size before Tutti is measured")
	flag.IntVar(&s.WarmPeer, "warm-peer", 60, "compilations of each size before Puppet Server is measured")
	flag.StringVar(&s.Heap, "heap", "1g", "Puppet Server's Java heap (Debian's default is 1g)")
	flag.IntVar(&s.Agents, "agents", 5000, "agents of the storm, a certificate each")
	flag.IntVar(&s.Resources, "resources", 49, "resources in the catalog of each of them")
	flag.DurationVar(&s.within, "within", 5*time.Second, "how long it takes until all of them have begun")
	flag.IntVar(&s.FileBytes, "file-bytes", 10_000, "size of the file that is fetched meanwhile")
	flag.IntVar(&s.FileClients, "file-clients", 2, "clients that fetch it")
	flag.Float64Var(&s.FileRate, "file-rate", 400, "files a second that they want together")
	s.Flags(40*time.Minute, "the servers' files and logs")
	flag.Parse()
	s.Within = s.within.String()
	s.Main("checkin", s.run)
}

func (s settings) run(ctx context.Context, dir string) error {
	facts, err := catalogrequest.Read(s.Facts)
	if err != nil {
		return err
	}
	environment := filepath.Join(dir, "environments", "production")
	if err := s.makeEnvironment(environment); err != nil {
		return err
	}
	report := &measure.Report{Name: "checkin", Time: time.Now().UTC(), Machine: measure.ThisMachine(), Settings: s}
	for name := range strings.SplitSeq(s.Only, ",") {
		rows, note, err := s.part(ctx, name, filepath.Join(dir, name), environment, facts)
		report.Rows, report.Notes = append(report.Rows, rows...), append(report.Notes, note)
		if err != nil {
			return report.Incomplete(os.Stdout, columns, fmt.Errorf("%s: %w", name, err))
		}
	}
	report.Notes = append(report.Notes, judge(report.Rows)...)
	report.Notes = append(report.Notes, judgeStorm(report.Rows)...)
	return report.Finish(os.Stdout, columns, s.Out)
}

// makeEnvironment is the one of bench/compile, and nodes of the storm, which have
// plain files.
func (s settings) makeEnvironment(environment string) error {
	if err := rivals.CopyTree(s.Environment, environment); err != nil {
		return fmt.Errorf("copy the environment: %w", err)
	}
	storm := fmt.Sprintf("node /^storm-/ {\n  Integer[1, %d].each |$n| {\n    file { \"/srv/${n}\": content => \"${facts['os']['release']['full']} ${n}\" }\n  }\n}\n", s.Resources)
	if err := os.WriteFile(filepath.Join(environment, "manifests/storm.pp"), []byte(storm), 0o644); err != nil { //nolint:gosec // other users' processes read it
		return err
	}
	files := filepath.Join(environment, "modules/storm/files")
	if err := os.MkdirAll(files, 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	return os.WriteFile(filepath.Join(files, "some.txt"), []byte(strings.Repeat("some text\n", s.FileBytes/10)), 0o644) //nolint:gosec // as above
}

// part starts a server, measures, and stops it.
func (s settings) part(ctx context.Context, name, dir, environment string, facts catalogrequest.Facts) (_ []measure.Row, note string, err error) {
	target, err := s.start(ctx, name, dir, environment)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if stop := target.Stop(); err == nil {
			err = stop
		}
	}()
	note = fmt.Sprintf("%s: version %s", name, target.Version(ctx))
	var rows []measure.Row
	if name == "storm" {
		rows, err = s.storm(ctx, target.(*rivals.Tutti), filepath.Join(dir, "data"), facts)
	} else {
		rows, err = s.cost(ctx, target, facts)
	}
	return rows, note, err
}

func (s settings) start(ctx context.Context, name, dir, environment string) (rivals.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	if name == "puppetserver" {
		return rivals.StartPuppetserver(ctx, rivals.PuppetserverConfig{
			Dir: dir, EnvironmentPath: filepath.Dir(environment), BaseModulePath: moduleDir, JRubies: 1, Heap: s.Heap,
		})
	}
	if name != "tutti" && name != "storm" {
		return nil, fmt.Errorf("no such part; have tutti, puppetserver, storm")
	}
	binary, err := rivals.BuildTutti(ctx, dir)
	if err != nil {
		return nil, err
	}
	target, err := s.StartTutti(ctx, binary, dir, rivals.AsFastAsItCan...)
	if err != nil {
		return nil, err
	}
	if err := target.Deploy(ctx, "production", environment, moduleDir); err != nil {
		_ = target.Stop()
		return nil, err
	}
	return target, nil
}
