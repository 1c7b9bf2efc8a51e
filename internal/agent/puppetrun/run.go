package puppetrun

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

const (
	maxOrderBytes = 1 << 20
	// lockWait is how long a run waits for another one, lockPoll how often it looks.
	lockWait = 10 * time.Minute
	lockPoll = 100 * time.Millisecond
	// lingering is how long what a run left in the background may hold its output.
	lingering = 2 * time.Second
	// usualPuppet is Puppet's executable where packages of Puppet put it.
	usualPuppet = "/opt/puppetlabs/bin/puppet"
)

// Main does the Puppet run that in orders, prints its results on out, and returns the exit code. Puppet
// prints on errs. When ctx ends, it does not wait for a lock any more; Puppet itself is not
// stopped here: whoever stops this program stops its group.
func Main(ctx context.Context, in io.Reader, out, errs io.Writer) int {
	results := ordered(ctx, in, errs)
	text, err := json.Marshal(results)
	if err != nil { // a report's text that is not UTF-8
		text, _ = json.Marshal(wrong(pxp.InvalidLastRunReport, results.ExitCode, "the report is not UTF-8"))
	}
	if _, err := out.Write(append(text, '\n')); err != nil || results.ErrorType != "" {
		return 1
	}
	return 0
}

// notRun is the exit code in results when Puppet was not run.
const notRun = -1

func ordered(ctx context.Context, in io.Reader, errs io.Writer) pxp.PuppetResults {
	var o pxp.PuppetOrder
	if err := json.UnmarshalRead(io.LimitReader(in, maxOrderBytes), &o); err != nil {
		return wrong(pxp.InvalidJSON, notRun, "standard input is not the JSON of an order: %v", err)
	}
	p, err := pxp.ParsePuppet(o.Input)
	if err != nil {
		return wrong(pxp.InvalidJSON, notRun, "the order is not one for a Puppet run: %v", err)
	}
	args, err := arguments(p.Flags, p.Job)
	if err != nil {
		return wrong(pxp.InvalidJSON, notRun, "%v", err)
	}
	bin, err := find(o.Configuration.Puppet)
	if err != nil {
		return wrong(pxp.NoPuppetBin, notRun, "%v", err)
	}
	run := &puppet{PuppetConfiguration: o.Configuration, bin: bin, errs: &ear{to: errs}}
	run.complaints.to = run.errs
	return run.do(ctx, args)
}

// find is the executable; a name without a directory is looked for in the PATH, and
// where Puppet's packages put it.
func find(bin string) (string, error) {
	if bin == "" {
		bin = "puppet"
	}
	path, err := exec.LookPath(bin)
	if err == nil {
		return path, nil
	}
	if filepath.Base(bin) == bin {
		if path, usualErr := exec.LookPath(usualPuppet); usualErr == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("Puppet's executable %s is not there: %w", bin, err) //nolint:staticcheck // a name
}

func wrong(kind string, exit int, format string, args ...any) pxp.PuppetResults {
	const unknown = "unknown"
	return pxp.PuppetResults{
		Time: unknown, TransactionUUID: unknown, Environment: unknown, Status: unknown, Metrics: map[string]int{},
		ExitCode: exit, Version: 1, ErrorType: kind, Error: fmt.Sprintf(format, args...),
	}
}

// puppet is the installed Puppet.
type puppet struct {
	pxp.PuppetConfiguration
	bin        string
	errs       *ear
	complaints complaints // what a run prints on standard error, on its way to errs
}

// files are where Puppet keeps what tells how its runs are.
type files struct {
	report   string
	disabled string
	lock     string
}

func (p *puppet) do(ctx context.Context, args []string) pxp.PuppetResults {
	s, err := p.asker().Settings(context.WithoutCancel(ctx))
	if err != nil {
		results := wrong(pxp.NoLastRunReport, notRun, "where Puppet leaves its report is not known: %v", err)
		p.complaints.into(&results)
		return results
	}
	at := files{report: s["lastrunreport"], disabled: s["agent_disabled_lockfile"], lock: s["agent_catalog_run_lockfile"]}
	if p.Catalog == nil {
		p.forgetPlugins(args)
		return p.attempt(ctx, args, at, func() error { return nil }).results
	}
	if there(at.disabled) {
		return disabled(notRun)
	}
	c, err := cachedAt(*p.Catalog, s)
	if err != nil {
		return wrong(pxp.CatalogForeign, notRun, "%v", err)
	}
	if _, err := readDocument(c.Document, c.Digest); err != nil {
		return wrong(pxp.CatalogDamaged, notRun, "%v", err)
	}
	p.syncPlugins(ctx, c.PuppetCatalog, s)
	end := p.attempt(ctx, cachedArguments(args, c.PuppetCatalog), at, c.put)
	c.judge(&end.results, end.report)
	return end.results
}

// asker asks Puppet for its settings.
func (p *puppet) asker() puppetenv.Asker {
	return puppetenv.Asker{Puppet: p.bin, Kept: p.Settings, Errs: &p.complaints, Say: p.say}
}

// run is one `puppet agent`, and its exit code.
func (p *puppet) run(ctx context.Context, args []string) (exit int, err error) {
	cmd := p.command(ctx, args)
	p.complaints.forget()
	cmd.Stdout = p.errs
	stream{dir: p.Events, transaction: p.Transaction}.into(cmd)
	err = cmd.Run()
	switch {
	case cmd.ProcessState == nil:
		return 0, err
	case !cmd.ProcessState.Exited(): // a signal ended it; -1 would say that it did not run
		return 1, nil
	default:
		return cmd.ProcessState.ExitCode(), nil
	}
}

// command is Puppet with our environment. ctx's end does not kill it: Puppet ends its
// run in order when it is told to, with the group.
func (p *puppet) command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), p.bin, args...) //nolint:gosec // args are checked
	cmd.Env = append(os.Environ(), puppetenv.Environment(os.Getenv)...)
	cmd.Stderr = &p.complaints
	cmd.WaitDelay = lingering
	return cmd
}

// freed waits until a lock is gone.
func freed(ctx context.Context, lock string) bool {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for there(lock) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func there(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Lstat(path)
	return err == nil
}
