// Package tool runs the system's own programs for built-in modules: without a shell, in the C locale, with an end and bounded output.
//
// # Errors
//
// NotFound for a program that is not there; Unavailable for one that cannot be run, or whose time was over. A program
// that ends with another exit code than 0 is no error.
//
// # Concurrency
//
// Everything may be used concurrently.
package tool

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/group"
	"github.com/tutti-project/tutti/internal/program/output"
)

// MaxOutputBytes is how much is kept of each of a program's outputs. The rest is read and thrown away.
const MaxOutputBytes = 1 << 20

// Box is where programs are looked for. The zero Box looks along the PATH, and where systems keep what only root runs.
type Box struct {
	Dirs []string
}

// Command is a program and how it is called.
type Command struct {
	Name  string // of the program, or its path
	Args  []string
	Env   []string // KEY=value, beside what the agent has; the locale is C if it says nothing else
	Clean bool     // it gets nothing of the agent's environment but the PATH
	// GoesOn leaves the program alone when its time is over: ending it would leave half of a change.
	GoesOn bool
}

// Done is what a program left.
type Done struct {
	Exit   int
	Stdout string
	Stderr string
	Cut    bool // there was more
}

// Find is the path of a program; empty: it is not there.
func (b Box) Find(name string) string {
	if filepath.IsAbs(name) {
		return executable(name)
	}
	for _, dir := range b.dirs() {
		if path := executable(filepath.Join(dir, name)); path != "" {
			return path
		}
	}
	return ""
}

func (b Box) dirs() []string {
	if b.Dirs != nil {
		return b.Dirs
	}
	return append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/bin", "/sbin", "/bin")
}

// executable is a path if there is a program at it.
func executable(path string) string {
	if found, err := exec.LookPath(path); err == nil && filepath.IsAbs(found) {
		return found
	}
	return ""
}

// afterwards is how long a program's output is read once it ended: what it leaves behind may hold it open.
const afterwards = time.Second

// Run runs a program to its end.
func (b Box) Run(ctx context.Context, c Command) (Done, error) {
	path := b.Find(c.Name)
	if path == "" {
		return Done{}, fault.New(fault.NotFound, "this node has no program %s", c.Name)
	}
	if c.GoesOn {
		return c.runOn(ctx, path)
	}
	cmd := c.program(ctx, path)
	out, errs := output.Beginning{Most: MaxOutputBytes}, output.Beginning{Most: MaxOutputBytes}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, afterwards
	err := cmd.Run()
	if ctx.Err() != nil {
		return Done{}, fault.Wrap(fault.Unavailable, ctx.Err(), "%s was ended: its time was over", c.Name)
	}
	if err := unrun(path, err); err != nil {
		return Done{}, err
	}
	return done(cmd, &out, &errs), nil
}

// program is what is run, until ctx is done.
func (c Command) program(ctx context.Context, path string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, c.Args...) //nolint:gosec // names are the modules' own, arguments are checked by their schemas
	group.Own(cmd)
	cmd.Dir, cmd.Env = string(filepath.Separator), c.environment()
	return cmd
}

// unrun is the error of a program that did not run.
func unrun(path string, err error) error {
	if _, exited := errors.AsType[*exec.ExitError](err); err == nil || exited || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "%s cannot be run: %v", path, err)
}

// runOn runs a program that goes on after ctx. It writes into files: a pipe would break when we end.
func (c Command) runOn(ctx context.Context, path string) (Done, error) {
	out, err := scratch()
	if err != nil {
		return Done{}, err
	}
	defer func() { _ = out.Close() }()
	errs, err := scratch()
	if err != nil {
		return Done{}, err
	}
	defer func() { _ = errs.Close() }()
	cmd := c.program(context.WithoutCancel(ctx), path)
	cmd.Stdout, cmd.Stderr = out, errs
	if err := unrun(path, cmd.Start()); err != nil {
		return Done{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		return Done{}, fault.Wrap(fault.Unavailable, ctx.Err(), "%s takes longer than the action may; it goes on by itself", c.Name)
	}
	if err := unrun(path, err); err != nil {
		return Done{}, err
	}
	return done(cmd, written(out), written(errs)), nil
}

// done is what an ended program left.
func done(cmd *exec.Cmd, out, errs *output.Beginning) Done {
	return Done{Exit: cmd.ProcessState.ExitCode(), Stdout: out.Text(), Stderr: errs.Text(), Cut: out.Cut() || errs.Cut()}
}

// scratch is a file without a name.
func scratch() (*os.File, error) {
	file, err := os.CreateTemp("", "tutti-action-")
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "there is no place for a program's output: %v", err)
	}
	_ = os.Remove(file.Name()) // Windows removes no open file, and has none of these programs
	return file, nil
}

// written is the beginning of what a program wrote into a file.
func written(file *os.File) *output.Beginning {
	k := &output.Beginning{Most: MaxOutputBytes}
	_, _ = io.Copy(k, io.NewSectionReader(file, 0, MaxOutputBytes+1)) // what cannot be read was not written
	return k
}

func (c Command) environment() []string {
	env := os.Environ()
	if c.Clean {
		env = []string{"PATH=" + os.Getenv("PATH"), "TERM=dumb"}
	}
	return append(append(env, "LC_ALL=C", "LANGUAGE=C"), c.Env...)
}

// Output is all that a program wrote.
func (d Done) Output() string {
	text := d.Stdout
	if text != "" && d.Stderr != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += d.Stderr
	if d.Cut {
		text += "\n(there is more)"
	}
	return text
}

// maxWhyBytes bounds the reason in a sentence.
const maxWhyBytes = 400

// Why is the reason that a program gave for failing: the end of standard error, or of its output, on one line.
func (d Done) Why() string {
	text := strings.TrimSpace(d.Stderr)
	if text == "" {
		text = strings.TrimSpace(d.Stdout)
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxWhyBytes {
		text = "... " + strings.ToValidUTF8(text[len(text)-maxWhyBytes:], "")
	}
	if text == "" {
		return "it says nothing"
	}
	return text
}
