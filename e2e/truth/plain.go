package truth

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed plain.rb
var plainCode []byte

// Plain compiles by plain Puppet: a Ruby process that forks one for each compilation.
// One goroutine may use it.
type Plain struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Request is one compilation.
type Request struct {
	Root        string     `json:"root"` // the environment's directory
	Environment string     `json:"environment"`
	Order       any        `json:"order"`
	Exported    []Exported `json:"exported"`
	Static      bool       `json:"static"`    // with the metadata of files
	Arguments   []string   `json:"arguments"` // more of Puppet's settings
}

// Exported is a resource that a node exports.
type Exported struct {
	Certname   string          `json:"certname"`
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Tags       []string        `json:"tags"`
	Parameters json.RawMessage `json:"parameters"`
}

// Result is what came of a compilation.
type Result struct {
	Catalog  json.RawMessage `json:"catalog"`
	Exported []Exported      `json:"exported"`
	Error    string          `json:"error"` // empty: there is a catalog
}

// StartPlain starts the process; dir is a directory of its own.
func StartPlain(dir, ruby string) (*Plain, error) {
	script := filepath.Join(dir, "plain.rb")
	if err := os.WriteFile(script, plainCode, 0o600); err != nil {
		return nil, fmt.Errorf("write the script of plain Puppet: %w", err)
	}
	cmd := exec.CommandContext(context.Background(), ruby, script) //nolint:gosec // the tests name it
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("prepare plain Puppet: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("prepare plain Puppet: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start plain Puppet: %w", err)
	}
	return &Plain{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, nil
}

// Compile compiles once.
func (p *Plain) Compile(r Request) (Result, error) {
	var line bytes.Buffer
	if err := json.NewEncoder(&line).Encode(r); err != nil {
		return Result{}, fmt.Errorf("encode the order: %w", err)
	}
	if _, err := p.in.Write(line.Bytes()); err != nil {
		return Result{}, fmt.Errorf("ask plain Puppet: %w", err)
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return Result{}, fmt.Errorf("hear plain Puppet: %w", err)
	}
	var result Result
	if err := json.Unmarshal(answer, &result); err != nil {
		return Result{}, fmt.Errorf("read the answer of plain Puppet: %w", err)
	}
	return result, nil
}

// Stop ends the process.
func (p *Plain) Stop() error {
	if err := p.in.Close(); err != nil {
		return fmt.Errorf("stop plain Puppet: %w", err)
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("stop plain Puppet: %w", err)
	}
	return nil
}
