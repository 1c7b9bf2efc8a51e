package ruby

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/compile"
)

// wireInputs is what a worker says it read.
type wireInputs struct {
	File     []string `json:"file"`
	List     []string `json:"list"`
	Names    []string `json:"names"`
	Tree     []string `json:"tree"`
	Module   []string `json:"module"`
	Anywhere []string `json:"anywhere"`
	Values   []string `json:"values"`
	Present  []string `json:"present"`
	Volatile []string `json:"volatile"`
}

func (w *wireInputs) reads() *compile.Reads {
	if w == nil {
		return nil
	}
	reads := &compile.Reads{Values: w.Values, Present: w.Present, Volatile: w.Volatile}
	reads.Sources.Add(compile.Sources{
		Files: paths(w.File), Lists: paths(w.List), Names: paths(w.Names), Trees: paths(w.Tree), Modules: paths(w.Module), Anywhere: paths(w.Anywhere),
	})
	return reads
}

// paths leaves out what no file can be called: a line of text could not hold it.
func paths(list []string) []string {
	return slices.DeleteFunc(list, func(path string) bool { return strings.ContainsAny(path, "\n\x00") || path == "" })
}

// engine names all that a catalog depends on besides its order and its code: Ruby,
// Puppet, our own part of the compiler, its settings, and the variables that it sees; granted names
// those that settings add.
func engine(ctx context.Context, interpreter string, settings Settings, granted string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	const ask = `require "puppet/version"; print "puppet ", Puppet.version, ", ruby ", RUBY_VERSION, " ", RUBY_PATCHLEVEL, "\n"
		1700.times { |month| time = Time.at(month * 2_629_746); print time.utc_offset, time.zone, "\n" }`
	cmd := exec.CommandContext(ctx, interpreter, "-e", ask)
	cmd.Env = environ(os.TempDir())
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for Puppet's version: %w", interpreter, err)
	}
	versions, zone, _ := strings.Cut(string(out), "\n")
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, zone)
	if err := settings.write(sum); err != nil {
		return "", err
	}
	_, _ = fmt.Fprintln(sum, granted)
	for _, variable := range environ("") {
		_, _ = fmt.Fprintln(sum, variable)
	}
	err = fs.WalkDir(zygoteCode, "zygote", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := zygoteCode.ReadFile(path)
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		return err
	})
	return fmt.Sprintf("%s, %s", versions, hex.EncodeToString(sum.Sum(nil))[:12]), err
}

// write writes all that compilers take from s. Processes read a global hiera.yaml once.
func (s Settings) write(to io.Writer) error {
	_, _ = fmt.Fprintf(to, "%+v\n", s)
	if s.HieraConfig == "" {
		return nil
	}
	text, err := os.ReadFile(s.HieraConfig)
	_, _ = fmt.Fprintf(to, "%d\n%s", len(text), text)
	if err != nil {
		return fmt.Errorf("read the global hiera.yaml: %w", err)
	}
	return nil
}

// Engine implements compile.Compiler.
func (p *Pool) Engine() string {
	if name := p.engine.Load(); name != nil {
		return *name
	}
	return ""
}
