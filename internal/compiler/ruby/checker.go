package ruby

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/fault"
)

//go:embed check
var checkCode embed.FS

// checkRoot is where the checked code seems to lie; nothing is there.
const checkRoot = "/etc/puppetlabs/code/environments/check"

// Checker reads files with Puppet's own parsers, in processes of their own: one for each check, which ends with it. They run none of the
// code. It may be used concurrently; there are at most Config.Workers processes at once, who comes then waits.
type Checker struct {
	cfg    Config // its limits and its directory count
	supply supply
	slots  chan struct{}
}

var _ codecheck.Parser = (*Checker)(nil)

// NewChecker makes a checker of a pool's settings: its interpreter, and the time and memory of one compile for all files together.
func NewChecker(cfg Config) *Checker {
	cfg = cfg.withDefaults()
	return &Checker{cfg, supplied(cfg), make(chan struct{}, cfg.Workers)}
}

// checkHead is the first line for a checker.
type checkHead struct {
	ModulePath []string `json:"modulepath"`
	Manifest   string   `json:"manifest"`
	Root       string   `json:"root"`
	Dir        string   `json:"dir"`
	Memory     int64    `json:"memory"`  // most address space
	Seconds    int64    `json:"seconds"` // most CPU, should we not be there any more to end it
	Strict     string   `json:"strict,omitempty"`
}

// checkFile comes before the bytes of a file.
type checkFile struct {
	Path  string `json:"path"`
	Kind  string `json:"kind"`
	Bytes int    `json:"bytes"`
}

// checkAnswer is what a checker says.
type checkAnswer struct {
	Level   string `json:"level"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Done    *int   `json:"done"`
}

// spaceOverMemory is how much address space Ruby has beside what it may fill: libraries and stacks.
const spaceOverMemory = 1 << 30

// Parse implements codecheck.Parser.
func (c *Checker) Parse(ctx context.Context, in codecheck.Input, tell func(codecheck.Finding)) error {
	cfg, engine, err := c.supply(ctx, in.Environment, in.Version)
	if err != nil {
		return err
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := os.MkdirAll(c.cfg.checkDir(), 0o700); err != nil {
		return fmt.Errorf("make a directory for checks of code: %w", err)
	}
	dir, err := os.MkdirTemp(c.cfg.checkDir(), "check-")
	if err != nil {
		return fmt.Errorf("make a directory for the check of code: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, checkCode); err != nil {
		return fmt.Errorf("write the check of code: %w", err)
	}
	work := workDir(dir)
	if err := c.cfg.Keeper.Private(work); err != nil {
		return fmt.Errorf("make a directory for the check of code: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, errTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, engine.interpreter, append(cfg.load(), filepath.Join(dir, "check", "main.rb"))...) //nolint:gosec // the operator's choice
	cmd.Dir, cmd.Env = work, cfg.gems(Grants{}).environ(work)
	cmd.WaitDelay = drainTimeout
	said := &firstLine{}
	cmd.Stderr = said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	process, err := c.cfg.Keeper.Start(cmd, cfg.spec(engine, cfg.gems(Grants{}), work, filepath.Join(dir, "check")))
	if err != nil {
		if ended := context.Cause(ctx); ended != nil {
			return c.explain(ended, -1, len(in.Files), nil, nil, err, said)
		}
		return fault.Wrap(fault.Unavailable, err, "the check of code could not be started")
	}
	var sending sync.WaitGroup
	var sent error
	sending.Go(func() { sent = errors.Join(c.send(ctx, stdin, in, cfg.Settings, work), stdin.Close()) })
	read, heard := hearFindings(stdout, tell)
	ended := context.Cause(ctx)
	sending.Wait()
	waited := process.Wait()
	return c.explain(ended, read, len(in.Files), heard, sent, waited, said)
}

// explain is nil when every file was read.
func (c *Checker) explain(ended error, read, files int, heard, sent, waited error, said *firstLine) error {
	switch {
	case read == files && heard == nil && waited == nil:
		return nil
	case errors.Is(ended, errTimeout):
		return fault.New(fault.Unavailable, "the files were not read within %s (compile_timeout)", c.cfg.Timeout)
	case ended != nil:
		return ended
	case sent != nil && waited == nil: // a file could not be opened
		return sent
	}
	return fault.Wrap(fault.Unavailable, errors.Join(heard, sent, waited), "the check of code ended early: %s", said)
}

// send writes all files. Who reads them may be gone: then what it said counts.
func (c *Checker) send(ctx context.Context, to io.Writer, in codecheck.Input, chosen Settings, dir string) error {
	out := bufio.NewWriterSize(to, 64<<10)
	encoder := json.NewEncoder(out)
	head := checkHead{
		ModulePath: append([]string{}, in.ModulePath...), Manifest: in.Manifest, Root: checkRoot, Dir: dir, Memory: c.cfg.MemoryBytes + spaceOverMemory,
		Seconds: int64(c.cfg.Timeout.Seconds()) + 1, Strict: chosen.Strict,
	}
	if err := encoder.Encode(head); err != nil {
		return err
	}
	for _, f := range in.Files {
		text, err := in.Open(ctx, f)
		if err != nil {
			return fmt.Errorf("read %s: %w", f.Path, err)
		}
		if err := encoder.Encode(checkFile{f.Path, string(f.Kind), len(text)}); err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return out.Flush()
}

// hearFindings tells what a checker finds, and says how many files it read.
func hearFindings(from io.Reader, tell func(codecheck.Finding)) (read int, err error) {
	lines := bufio.NewReaderSize(from, 64<<10)
	read = -1
	for {
		line, err := readLine(lines, maxQuestion)
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		var a checkAnswer
		if err == nil {
			err = json.Unmarshal(line, &a)
		}
		switch {
		case err != nil:
			_, _ = io.Copy(io.Discard, lines) // so that it can end
			return read, err
		case a.Done != nil:
			read = *a.Done
		default:
			text := strings.Join(strings.Fields(a.Message), " ")
			tell(codecheck.Finding{Level: codecheck.Level(a.Level), File: a.File, Line: max(0, a.Line), Column: max(0, a.Column), Message: text})
		}
	}
}

// firstLine keeps the beginning of what a process says, for people.
type firstLine struct{ text bytes.Buffer }

const maxFirstLine = 500

func (f *firstLine) Write(p []byte) (int, error) {
	if room := maxFirstLine - f.text.Len(); room > 0 {
		f.text.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (f *firstLine) String() string {
	text := strings.TrimSpace(f.text.String())
	if text == "" {
		return "it said nothing"
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}
