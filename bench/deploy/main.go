// Deploy measures what the check of a deploy costs besides compiling: a repository of many files of which some changed, and what a push
// takes from its webhook to the end of its deploy. There are no nodes, so that nothing is compiled.
//
//	go run ./bench/deploy [-files 5000] [-changed 20] [-runs 5]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Files   int `json:"files"`
	Changed int `json:"changed"`
	Runs    int `json:"runs"`

	rivals.Knobs `json:"-"`
}

func main() {
	var s settings
	flag.IntVar(&s.Files, "files", 5000, "files of the repository")
	flag.IntVar(&s.Changed, "changed", 20, "files that change before each deploy")
	flag.IntVar(&s.Runs, "runs", 5, "deploys that are measured")
	s.Flags(20*time.Minute, "the server's files and log")
	flag.Parse()
	s.Main("deploy", s.run)
}

var columns = []string{"deploys", "read", "check_p50_ms", "check_max_ms", "command_p50_ms", "push_p50_ms", "push_max_ms", "cpu_ms", "others_cores"}

func (s settings) run(ctx context.Context, dir string) error {
	if s.Changed < 1 || s.Files < 10*s.Changed || s.Runs < 1 {
		return fmt.Errorf("-changed and -runs are at least 1, and -files at least ten times -changed")
	}
	return measure.Run(measure.Report{Name: "deploy", Settings: s}, columns, s.Out, func() ([]measure.Row, error) { return s.measure(ctx, dir) }, nil)
}

func (s settings) measure(ctx context.Context, dir string) ([]measure.Row, error) {
	return s.Alone(ctx, dir, nil, func(tutti *rivals.Tutti, _ string) ([]measure.Row, error) {
		b := &bench{settings: s, tutti: tutti, repo: filepath.Join(dir, "control")}
		for i := range s.Files {
			if err := b.write(i, 0); err != nil {
				return nil, err
			}
		}
		return measure.InTurn(ctx, b.first, b.some, b.pushes)
	})
}

// bench is a server and a repository.
type bench struct {
	settings
	tutti *rivals.Tutti
	repo  string
	turn  int
}

// kinds are the files of a module, in turn: as modules have them, more manifests than others.
var kinds = []struct{ path, text string }{
	{"manifests/c%d.pp", "# %[2]d\nclass m%[1]d::c%[3]d (String $x = 'y', Optional[Integer[0]] $n = undef) {\n  if $n {\n" +
		"    file { \"/tmp/m%[1]d-c%[3]d\":\n      ensure  => file,\n      content => epp('m%[1]d/t.epp', { 'x' => $x }),\n" +
		"      mode    => '0644',\n    }\n  }\n}\n"},
	{"manifests/d%d.pp", "# %[2]d\ndefine m%[1]d::d%[3]d (Hash[String, String] $values = {}) {\n" +
		"  $values.each |$k, $v| {\n    notify { \"${title} ${k}\": message => $v }\n  }\n}\n"},
	{"templates/t%d.epp", "<%%- | String $x | -%%>\n# %[2]d\nvalue <%%= $x %%>\n"},
	{"templates/e%d.erb", "# %[2]d\n<%% @list.to_a.each do |l| -%%>\n<%%= l %%>\n<%% end -%%>\n"},
	{"data/d%d.yaml", "# %[2]d\nm%[1]d::x: text\nm%[1]d::list:\n  - one\n  - two\n"},
}

// perModule is how many files a module has.
const perModule = 50

// write writes the file of a number, as it is in a turn.
func (b *bench) write(number, turn int) error {
	module, kind := number/perModule, kinds[number%len(kinds)]
	path := filepath.Join(b.repo, "modules", fmt.Sprintf("m%d", module), fmt.Sprintf(kind.path, number))
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Appendf(nil, kind.text, module, turn, number), 0o600)
}

// first deploys all files.
func (b *bench) first(ctx context.Context) (measure.Row, error) {
	return b.deploys(ctx, "all files", 1)
}

// some deploys a few changed files, again and again.
func (b *bench) some(ctx context.Context) (measure.Row, error) {
	return b.deploys(ctx, fmt.Sprintf("%d of %d files", b.Changed, b.Files), b.Runs)
}

func (b *bench) deploys(ctx context.Context, name string, times int) (measure.Row, error) {
	var checks, commands []time.Duration
	read := 0
	watch, err := measure.Start(ctx, b.tutti.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	for range times {
		var check, command time.Duration
		check, command, read, err = b.deploy(ctx)
		if err != nil {
			break
		}
		checks, commands = append(checks, check), append(commands, command)
	}
	span, err := watch.Stop(err)
	if err != nil {
		return measure.Row{}, err
	}
	took, command := measure.Summarize(checks), measure.Summarize(commands)
	return measure.Row{Server: "tutti", Case: name, Figures: map[string]float64{
		"deploys": float64(len(checks)), "read": float64(read), "check_p50_ms": ms(took.P50),
		"check_max_ms": ms(slices.Max(checks)), "command_p50_ms": ms(command.P50),
		"cpu_ms": 1000 * span.Server.Seconds() / float64(times), "others_cores": span.Cores(span.Others),
	}}, nil
}

// deploy changes files, but for the first time, and deploys them.
func (b *bench) deploy(ctx context.Context) (check, command time.Duration, read int, err error) {
	if b.turn > 0 {
		for i := range b.Changed {
			if err := b.write(i*(b.Files/b.Changed)+i%len(kinds), b.turn); err != nil {
				return 0, 0, 0, err
			}
		}
	}
	b.turn++
	began := time.Now()
	out, err := b.tutti.Run(ctx, "code", "deploy", "production", b.repo, "-o", "json")
	if err != nil {
		return 0, 0, 0, err
	}
	command = time.Since(began)
	var version api.Deployed
	if err := json.Unmarshal(out, &version); err != nil {
		return 0, 0, 0, err
	}
	if version.Check == nil {
		return 0, 0, 0, fmt.Errorf("the deploy was not checked")
	}
	return time.Duration(version.Check.Seconds * float64(time.Second)), command, version.Check.Files, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
