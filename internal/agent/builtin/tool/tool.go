// Package tool runs the system's own programs for built-in modules: without a shell, in the C locale, with an end and bounded output.
//
// # Errors
//
// NotFound for a program that is not there; Unavailable for one that cannot be run, or was ended because its time was over. A program
// that ends with another exit code than 0 is no error.
//
// # Concurrency
//
// Everything may be used concurrently.
package tool

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/group"
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
	cmd := exec.CommandContext(ctx, path, c.Args...) //nolint:gosec // names are the modules' own, arguments are checked by their schemas
	group.Own(cmd)
	var out, errs kept
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env, cmd.WaitDelay = &out, &errs, string(filepath.Separator), c.environment(), afterwards
	err := cmd.Run()
	if ctx.Err() != nil {
		return Done{}, fault.Wrap(fault.Unavailable, ctx.Err(), "%s was ended: its time was over", c.Name)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay) {
		return Done{}, fault.Wrap(fault.Unavailable, err, "%s cannot be run: %v", path, err)
	}
	return Done{Exit: cmd.ProcessState.ExitCode(), Stdout: out.text(), Stderr: errs.text(), Cut: out.cut || errs.cut}, nil
}

func (c Command) environment() []string {
	env := os.Environ()
	if c.Clean {
		env = []string{"PATH=" + os.Getenv("PATH"), "TERM=dumb"}
	}
	return append(append(env, "LC_ALL=C", "LANGUAGE=C"), c.Env...)
}

// kept is the beginning of what is written to it.
type kept struct {
	buffer bytes.Buffer // no embedded one: its ReadFrom knows no bound
	cut    bool
}

// Write implements io.Writer.
func (k *kept) Write(p []byte) (int, error) {
	fits := min(len(p), MaxOutputBytes-k.buffer.Len())
	k.cut = k.cut || fits < len(p)
	k.buffer.Write(p[:fits])
	return len(p), nil
}

func (k *kept) text() string {
	return strings.ToValidUTF8(strings.ReplaceAll(k.buffer.String(), "\x00", "\uFFFD"), "\uFFFD")
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
