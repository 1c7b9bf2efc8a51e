package sql

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// oneFile is a compile.Differ: one file differs.
type oneFile string

func (f oneFile) Changes(context.Context, fleet.Environment, fleet.Digest, fleet.Digest) (*compile.Changes, error) {
	return &compile.Changes{Files: map[string]bool{string(f): true}}, nil
}

// BenchmarkTouched says how long it takes until it is known whom a version touches:
// 10 000 made-up nodes of 50 roles, each of which read 160 source files in 20 groups, one
// of them its own, and 20 facts. With
// -benchtime 1x it is the first time after a start, which reads what they read.
func BenchmarkTouched(b *testing.B) {
	const nodes = 10_000
	older, newer := fleet.DigestOf([]byte("older")), fleet.DigestOf([]byte("newer"))
	s := openSQLiteBench(b)
	fillStandings(b, s, nodes, older)
	for _, bench := range []struct {
		name, file string
		touched    int
	}{{"2%", "modules/role7/manifests/init.pp", nodes / 50}, {"none", "README.md", 0}} {
		wanter, err := compile.NewWanter(compile.WanterParts{
			Store: s.Wants, Standings: s.Wants, Readings: s.Reusables, Reuser: compile.NewReuser(compile.ReuserParts{Versions: oneFile(bench.file)}),
		}, compile.DefaultWanter())
		if err != nil {
			b.Fatal(err)
		}
		know := func(b *testing.B) {
			b.Helper()
			before := cpuTime()
			defer func() { b.ReportMetric(float64((cpuTime()-before).Milliseconds())/float64(b.N), "cpu-ms/op") }()
			for range b.N {
				standings, err := s.Wants.Standings(b.Context(), "production")
				if err != nil {
					b.Fatal(err)
				}
				plan, err := wanter.Touched(b.Context(), "production", newer, standings)
				if err != nil || len(plan.Touched) != bench.touched || len(plan.Stands) != nodes-bench.touched {
					b.Fatalf("%d touched, %d stand, %v", len(plan.Touched), len(plan.Stands), err)
				}
			}
		}
		b.Run(bench.name, know)
	}
	b.Run("status", func(b *testing.B) { // of a version that all stand for: `tutti code status` starts with nothing in memory
		before := cpuTime()
		defer func() { b.ReportMetric(float64((cpuTime()-before).Milliseconds())/float64(b.N), "cpu-ms/op") }()
		wanter, err := compile.NewWanter(compile.WanterParts{Store: s.Wants, Standings: s.Wants, Readings: s.Reusables}, compile.DefaultWanter())
		if err != nil {
			b.Fatal(err)
		}
		for range b.N {
			status, err := wanter.Status(b.Context(), "production", older)
			if err != nil || status.Current != nodes {
				b.Fatalf("%+v, %v", status, err)
			}
		}
	})
	mark := compile.Mark{}
	b.Run("moved", func(b *testing.B) { // what a deploy that touches nothing writes
		standings, err := s.Wants.Standings(b.Context(), "production")
		if err != nil {
			b.Fatal(err)
		}
		for n := range b.N {
			version := fleet.DigestOf(fmt.Append(nil, b.N, n))
			for at := 0; at < len(standings); at += 500 {
				to := compile.Mark{Environment: "production", Version: version, Upto: standings[at].Node, Done: true}
				if err := s.Wants.Consider(b.Context(), compile.Step{From: mark, To: to, Stands: standings[at : at+500]}); err != nil {
					b.Fatal(err)
				}
				mark = to
			}
		}
	})
}

// cpuTime is what this process used: the machine may be busy with other things.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // zero, then
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// openSQLiteBench opens a store of the benchmark's own.
func openSQLiteBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.Context(), Config{Path: b.TempDir() + "/tutti.db"}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// fillStandings makes rows as finished compilations leave them.
func fillStandings(b *testing.B, s *Store, nodes int, version fleet.Digest) {
	b.Helper()
	err := s.write(b.Context(), func(ctx context.Context, q querier) error {
		for n := range nodes {
			node, id := fmt.Sprintf("node-%05d.example.test", n), int64(n+1)
			for _, row := range []struct {
				text string
				args []any
			}{
				{"INSERT INTO nodes (id, certname, environment, created_at) VALUES ($1, $2, 'production', 1)", []any{id, node}},
				{"INSERT INTO factsets (node_id, environment, digest, seq, produced_at, received_at) VALUES ($1, 'production', 'd', 1, 1, 1)", []any{id}},
				{`INSERT INTO catalogs (node_id, environment, digest, version, uuid, transaction_uuid, compiled_at, compilation, seq)
					VALUES ($1, 'production', 'd', $2, 'u', '', 1, $1, 1)`, []any{id, version}},
				{`INSERT INTO compilations (id, certname, environment, version, facts_seq, transaction_uuid, trusted, priority, state, wanted_at, finished_at, catalog)
					VALUES ($1, $2, 'production', $3, 1, '', '', 50, 'done', 1, 1, 'd')`, []any{id, node, version}},
				{`INSERT INTO standings (certname, environment, staged, compilation, inputs, version, volatile, compiled_at)
					VALUES ($1, 'production', 0, $2, $2, $3, 0, 1)`, []any{node, id, version}},
			} {
				if _, err := q.exec(ctx, row.text, row.args...); err != nil {
					return err
				}
			}
			if err := s.Reusables.putInputs(ctx, q, id, manyInputs(node, n%50), time.Unix(1, 0)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// manyInputs is what a made-up compilation of a role reads.
func manyInputs(node string, role int) *compile.InputSet {
	set := &compile.InputSet{At: time.Unix(1, 0), Engine: "made-up 1", Given: fleet.DigestOf([]byte("given"))}
	for n := range 20 {
		set.Values = append(set.Values, compile.Value{Pointer: fmt.Sprintf("/facts/fact%d/part", n), Digest: string(fleet.DigestOf([]byte{byte(n)}))})
	}
	set.Sources.Files = []string{"data/nodes/" + node + ".yaml", "hiera.yaml", "manifests/site.pp"}
	for module := range 18 {
		name := fmt.Sprintf("shared%d", module)
		if module == 0 {
			name = fmt.Sprintf("role%d", role)
		}
		for _, file := range []string{"init", "install", "config", "service", "params", "repo", "user", "log"} {
			set.Sources.Files = append(set.Sources.Files, "modules/"+name+"/manifests/"+file+".pp")
		}
	}
	set.Sources.Add(compile.Sources{})
	return set
}
