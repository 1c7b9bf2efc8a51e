package ruby

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/cell"
)

//go:embed plain
var plainCode embed.FS

// Plain compiles orders with plain Puppet, each in a process of its own, one at a time, at the lowest priority. It shares
// none of the Ruby code of workers: see plain/plain.rb. It implements compile.Plain and may be used concurrently.
type Plain struct {
	cfg        Config // its limits and its directory count
	supply     supply
	checkout   code.Checkout
	modulePath ModulePath
	slot       chan struct{}
	swept      sync.Once // what an earlier life left is removed
}

// ModulePath says where a version has its modules, as its manifest lists them: paths below its root.
type ModulePath func(ctx context.Context, env fleet.Environment, version fleet.Digest) ([]string, error)

var _ compile.Plain = (*Plain)(nil)

// NewPlain returns a compiler that leaves nothing behind in cfg.Dir. Ruby, Dir, Timeout and the limits of cfg count.
func NewPlain(cfg Config, checkout code.Checkout, modulePath ModulePath) *Plain {
	cfg = cfg.withDefaults()
	return &Plain{cfg: cfg, supply: supplied(cfg), checkout: checkout, modulePath: modulePath, slot: make(chan struct{}, 1)}
}

// plainOrder is the line that plain.rb reads.
type plainOrder struct {
	*wireOrder
	Environment string             `json:"environment"`
	Version     string             `json:"version"`
	Root        string             `json:"root"`
	ModulePath  []string           `json:"modulepath"`
	Settings    Settings           `json:"settings"`
	Answers     []compile.Recorded `json:"answers"`
}

// plainAnswer is what plain.rb writes.
type plainAnswer struct {
	Catalog    json.RawMessage `json:"catalog"`
	Exported   json.RawMessage `json:"exported"`
	Error      *string         `json:"error"`
	Unrecorded []string        `json:"unrecorded"`
}

// Opinion implements compile.Plain.
func (p *Plain) Opinion(ctx context.Context, order compile.Order, answers []compile.Recorded) (compile.Opinion, error) {
	if err := checkOrder(order, p.cfg.MaxOrderBytes); err != nil {
		return compile.Opinion{}, err
	}
	select {
	case p.slot <- struct{}{}:
		defer func() { <-p.slot }()
	case <-ctx.Done():
		return compile.Opinion{}, ctx.Err()
	}
	root, release, err := p.checkout.Path(ctx, order.Version)
	if err != nil {
		return compile.Opinion{}, fmt.Errorf("read version %s: %w", order.Version.Short(), err)
	}
	defer release()
	modules, err := p.modulePath(ctx, order.Environment, order.Version)
	if err != nil {
		return compile.Opinion{}, fmt.Errorf("read the module path of version %s: %w", order.Version.Short(), err)
	}
	line, err := json.Marshal(plainOrder{
		wireOrder: toWire(order), Environment: string(order.Environment), Version: string(order.Version), Root: root, ModulePath: modules,
		Settings: p.cfg.Settings, Answers: answers,
	})
	if err != nil {
		return compile.Opinion{}, fmt.Errorf("write the order: %w", err)
	}
	dir, err := p.prepare()
	if err != nil {
		return compile.Opinion{}, fault.Wrap(fault.Unavailable, err, "the directory of plain Puppet could not be made")
	}
	defer func() { _ = os.RemoveAll(dir) }()
	began := time.Now()
	text, usage, err := p.run(ctx, order, dir, root, append(line, '\n'))
	if err != nil {
		return compile.Opinion{}, err
	}
	opinion, err := p.read([]byte(shownPaths(workDir(dir), root, order.Environment).Replace(string(text))))
	opinion.Cost = compile.Cost{Wall: time.Since(began), CPU: usage}
	return opinion, err
}

// prepare makes a directory for one process, with the Ruby code.
func (p *Plain) prepare() (string, error) {
	parent := filepath.Join(p.cfg.Dir, "plain")
	p.swept.Do(func() { _ = os.RemoveAll(parent) })
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return "", err
	}
	if err := p.cfg.Keeper.Private(workDir(dir)); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	err = fs.WalkDir(plainCode, "plain", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, "ruby", strings.TrimPrefix(path, "plain"))
		if entry.IsDir() {
			return os.MkdirAll(to, 0o755) //nolint:gosec // the directory around it is ours alone; code may run as another user
		}
		text, err := plainCode.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644) //nolint:gosec // as above
	})
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return dir, err
}

// workDir is where the process may write.
func workDir(dir string) string { return filepath.Join(dir, "work") }

// shownPaths replaces this machine's directories by those of a Puppet Server.
func shownPaths(dir, root string, env fleet.Environment) *strings.Replacer {
	const shown = "/etc/puppetlabs/code/environments"
	return strings.NewReplacer(
		filepath.Join(dir, "code", "environments"), shown,
		root, shown+"/"+string(env),
		filepath.Join(dir, "conf"), "/etc/puppetlabs/puppet",
		filepath.Join(dir, "code"), "/etc/puppetlabs/code",
		filepath.Join(dir, "var"), "/opt/puppetlabs/server/data/puppetserver",
	)
}

// run has one process answer, and ends it with all that it started.
func (p *Plain) run(ctx context.Context, order compile.Order, dir, root string, line []byte) (answer []byte, cpu time.Duration, err error) {
	cfg, engine, err := p.supply(ctx, order.Environment, order.Version)
	if err != nil {
		return nil, 0, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.cfg.Timeout, errTimeout)
	defer cancel()
	lifeline, hold, err := os.Pipe()
	if err != nil {
		return nil, 0, fmt.Errorf("make a pipe: %w", err)
	}
	results, answers, err := os.Pipe()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("make a pipe: %w", err), lifeline.Close(), hold.Close())
	}
	defer func() { _, _ = results.Close(), hold.Close() }()
	words := &firstBytes{most: 8 << 10}
	//nolint:noctx,gosec // its group is killed; the operator chose the interpreter
	cmd := exec.Command(engine.interpreter, append(cfg.load(), filepath.Join(dir, "ruby", "plain.rb"))...)
	grants := cfg.grants(order.Environment)
	cmd.Dir, cmd.Env = workDir(dir), grants.environ(workDir(dir))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = lifeline, words, words
	cmd.ExtraFiles = []*os.File{answers}
	cmd.WaitDelay = time.Second
	spec := cfg.spec(engine, grants, workDir(dir), root, filepath.Join(dir, "ruby"))
	spec.Nice = 19 // nobody waits for it
	process, err := p.cfg.Keeper.Start(cmd, spec)
	_, _ = lifeline.Close(), answers.Close()
	if err != nil {
		return nil, 0, fault.Wrap(fault.Unavailable, err, "plain Puppet could not be started")
	}
	w := &plainWatch{process: process, most: p.cfg.MemoryBytes}
	stop := context.AfterFunc(limited, process.Kill)
	var watching sync.WaitGroup
	watching.Go(func() { w.run(limited) })
	watching.Go(func() { _, _ = hold.Write(line) }) // a process that is gone does not read it; then there is no answer
	answer, err = io.ReadAll(io.LimitReader(results, 2*p.cfg.MaxCatalogBytes+1))
	process.Kill()     // it said all; what generate() left behind ends here
	_ = process.Wait() // how it ended is told by its answer
	stop()
	timedOut := errors.Is(context.Cause(limited), errTimeout)
	cancel()
	_ = hold.Close()
	watching.Wait()
	cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch {
	case ctx.Err() != nil:
		return nil, cpu, ctx.Err()
	case timedOut:
		return nil, cpu,
			&compile.Error{Cause: compile.CauseTimeout, Message: fmt.Sprintf("plain Puppet did not compile the catalog within %s", fault.Duration(p.cfg.Timeout))}
	case w.hungry:
		return nil, cpu, &compile.Error{Cause: compile.CauseMemory, Message: fmt.Sprintf("plain Puppet wanted more than %d MB of memory", p.cfg.MemoryBytes>>20)}
	case err != nil || len(answer) == 0:
		return nil, cpu, fault.Wrap(fault.Unavailable, errors.Join(err, errors.New(words.String())), "plain Puppet ended without an answer")
	case int64(len(answer)) > 2*p.cfg.MaxCatalogBytes:
		return nil, cpu, &compile.Error{Cause: compile.CauseMemory, Message: "the catalog of plain Puppet is larger than allowed"}
	}
	return answer, cpu, nil
}

// read takes the answer apart.
func (p *Plain) read(text []byte) (compile.Opinion, error) {
	var answer plainAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return compile.Opinion{}, fault.Wrap(fault.Unavailable, err, "plain Puppet's answer cannot be read")
	}
	opinion := compile.Opinion{Catalog: answer.Catalog, Exported: answer.Exported, Unrecorded: answer.Unrecorded}
	if answer.Error != nil {
		opinion.Err = &compile.Error{Cause: compile.CauseCode, Message: *answer.Error}
	}
	return opinion, nil
}

// plainWatch kills a process group that holds too much memory.
type plainWatch struct {
	process *cell.Process
	most    int64
	hungry  bool
}

func (w *plainWatch) run(ctx context.Context) {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if w.process.Resident(w.process.Program()) > w.most {
			w.hungry = true
			w.process.Kill()
			return
		}
	}
}

// firstBytes keeps the beginning of what is written.
type firstBytes struct {
	bytes.Buffer
	most int
}

func (b *firstBytes) Write(p []byte) (int, error) {
	if room := b.most - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
