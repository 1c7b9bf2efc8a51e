package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// freshCompiler compiles in a new process each time (testdata/fresh.rb).
type freshCompiler struct {
	in    io.WriteCloser
	out   *bufio.Reader
	known compile.Inventory
}

func newFreshCompiler(t *testing.T, known compile.Inventory) *freshCompiler {
	t.Helper()
	if _, err := exec.LookPath("puppet"); err != nil {
		t.Fatal("no puppet here: make test-deps")
	}
	code, err := filepath.Abs("../ruby/zygote")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ruby", "testdata/fresh.rb", code)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &freshCompiler{in: in, out: bufio.NewReaderSize(out, 1<<20), known: known}
}

// freshResult is a catalog, or why there is none.
type freshResult struct {
	outcome compile.Outcome
	failed  string
}

// compile compiles orders of one version, one after the other.
func (f *freshCompiler) compile(ctx context.Context, root string, orders []compile.Order) ([]freshResult, error) {
	type wire struct {
		Node        string          `json:"node"`
		Facts       json.RawMessage `json:"facts"`
		Trusted     json.RawMessage `json:"trusted"`
		ServerFacts json.RawMessage `json:"server_facts"`
		Classes     json.RawMessage `json:"classes"`
		Parameters  json.RawMessage `json:"parameters"`
		Data        json.RawMessage `json:"data"`
	}
	list := make([]wire, len(orders))
	for i, o := range orders {
		list[i] = wire{string(o.Node), o.Facts, o.Trusted, o.ServerFacts, o.Classes, o.Parameters, o.Data}
	}
	request, err := json.Marshal(map[string]any{"root": root, "environment": "production", "version": string(orders[0].Version), "orders": list})
	if err != nil {
		return nil, err
	}
	if _, err := f.in.Write(append(request, '\n')); err != nil {
		return nil, err
	}
	results := make([]freshResult, len(orders))
	for i := range orders {
		if results[i], err = f.hear(ctx); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// hear answers questions until there is an answer.
func (f *freshCompiler) hear(ctx context.Context) (freshResult, error) {
	for {
		line, err := f.out.ReadBytes('\n')
		if err != nil {
			return freshResult{}, err
		}
		var m struct {
			Ask, Node, Type, Query string
			Filter                 json.RawMessage
			Error                  *compile.Error
			CatalogBytes           int64 `json:"catalog_bytes"`
			ExportedBytes          int64 `json:"exported_bytes"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return freshResult{}, err
		}
		switch {
		case m.Ask == "collect":
			var found []compile.Exported
			if found, err = f.known.Exported(ctx, compile.Collector{Node: fleet.Certname(m.Node), Type: m.Type, Filter: m.Filter, MaxBytes: 1 << 26}); err == nil {
				err = f.answer(compile.EncodeExported(found))
			}
		case m.Ask == "query":
			err = f.answer(f.known.Query(ctx, compile.Query{Text: m.Query, MaxBytes: 1 << 26}))
		case m.Error != nil:
			return freshResult{failed: m.Error.Message}, nil //nolint:nilerr // that is a result
		default:
			documents := make([]byte, m.CatalogBytes+m.ExportedBytes)
			_, err = io.ReadFull(f.out, documents)
			return freshResult{outcome: compile.Outcome{Catalog: documents[:m.CatalogBytes:m.CatalogBytes], Exported: documents[m.CatalogBytes:]}}, err
		}
		if err != nil {
			return freshResult{}, err
		}
	}
}

func (f *freshCompiler) answer(rows json.RawMessage, err error) error {
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, rows); err != nil {
		return err
	}
	_, err = f.in.Write([]byte(`{"v":1,"rows":` + line.String() + "}\n"))
	return err
}
