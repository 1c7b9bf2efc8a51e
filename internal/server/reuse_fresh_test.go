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
	"reflect"
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// freshCompiler compiles in a new process each time (testdata/fresh.rb).
type freshCompiler struct {
	in    io.WriteCloser
	out   *bufio.Reader
	known compile.Inventory
	done  map[fleet.Certname]freshlyDone
	asked []freshQuestion // of the compilation at hand
}

func newFreshCompiler(t *testing.T, known compile.Inventory) *freshCompiler {
	t.Helper()
	if _, err := exec.LookPath("puppet"); err != nil {
		t.Fatal("no puppet here: make test-deps")
	}
	code, err := filepath.Abs("../compiler/ruby/zygote")
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
	return &freshCompiler{in: in, out: bufio.NewReaderSize(out, 1<<20), known: known, done: map[fleet.Certname]freshlyDone{}}
}

// freshResult is a catalog, or why there is none.
type freshResult struct {
	outcome compile.Outcome
	failed  string
}

// compile compiles orders of one version, one after the other. An order that is the
// same to the last byte, of the same version, and whose questions have the same
// answers is not compiled again: a compilation is a function of these.
func (f *freshCompiler) compile(ctx context.Context, root string, orders []compile.Order) ([]freshResult, error) {
	results := make([]freshResult, len(orders))
	var left []compile.Order
	var at []int
	for i, o := range orders {
		known, ok := f.done[o.Node]
		same, err := f.same(ctx, known, o)
		if err != nil {
			return nil, err
		}
		if ok && same {
			results[i] = known.result
		} else {
			left, at = append(left, o), append(at, i)
		}
	}
	if len(left) == 0 {
		return results, nil
	}
	fresh, err := f.anew(ctx, root, left)
	for j, done := range fresh {
		f.done[left[j].Node] = done
		results[at[j]] = done.result
	}
	return results, err
}

// freshlyDone is an order, what it asked, and what came of it.
type freshlyDone struct {
	order  compile.Order
	asked  []freshQuestion
	result freshResult
}

type freshQuestion struct {
	collector *compile.Collector
	query     *compile.Query
	answer    string
}

// same tells whether o is known's order and the answers are those it got.
func (f *freshCompiler) same(ctx context.Context, known freshlyDone, o compile.Order) (bool, error) {
	if !reflect.DeepEqual(known.order, o) {
		return false, nil
	}
	for _, q := range known.asked {
		rows, err := f.ask(ctx, q)
		if err != nil || string(rows) != q.answer {
			return false, err
		}
	}
	return true, nil
}

func (f *freshCompiler) ask(ctx context.Context, q freshQuestion) (json.RawMessage, error) {
	if q.query != nil {
		return f.known.Query(ctx, *q.query)
	}
	found, err := f.known.Exported(ctx, *q.collector)
	if err != nil {
		return nil, err
	}
	return compile.EncodeExported(found)
}

// anew compiles orders in a process of its own.
func (f *freshCompiler) anew(ctx context.Context, root string, orders []compile.Order) ([]freshlyDone, error) {
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
	results := make([]freshlyDone, len(orders))
	for i := range orders {
		f.asked = nil
		result, err := f.hear(ctx)
		results[i] = freshlyDone{order: orders[i], asked: f.asked, result: result}
		if err != nil {
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
			err = f.answer(ctx, freshQuestion{collector: &compile.Collector{Node: fleet.Certname(m.Node), Type: m.Type, Filter: m.Filter, MaxBytes: 1 << 26}})
		case m.Ask == "query":
			err = f.answer(ctx, freshQuestion{query: &compile.Query{Text: m.Query, MaxBytes: 1 << 26}})
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

func (f *freshCompiler) answer(ctx context.Context, q freshQuestion) error {
	rows, err := f.ask(ctx, q)
	if err != nil {
		return err
	}
	q.answer = string(rows)
	f.asked = append(f.asked, q)
	var line bytes.Buffer
	if err := json.Compact(&line, rows); err != nil {
		return err
	}
	_, err = f.in.Write([]byte(`{"v":1,"rows":` + line.String() + "}\n"))
	return err
}
