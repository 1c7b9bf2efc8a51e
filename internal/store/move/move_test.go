package move_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/backup"
	"github.com/tutti-project/tutti/internal/store/move"
)

var errKilled = errors.New("killed")

// world is two databases. Whatever is done to them counts as a step; at one of them the process is killed, before or behind it.
type world struct {
	from, to database
	steps    int
	killAt   int // 0: nobody is killed
}

func (w *world) step(do func()) error {
	w.steps++
	if w.steps == w.killAt {
		return errKilled
	}
	do()
	w.steps++
	if w.steps == w.killAt {
		return errKilled
	}
	return nil
}

// database is rows in memory. What Load brings counts when Finish has ended.
type database struct {
	name string
	rows []string
	mark move.Mark
	of   *world
	bad  bool // a value is lost on its way
}

func (d *database) Standing(context.Context) (s move.Standing, err error) {
	err = d.of.step(func() { s = move.Standing{Mark: d.mark, Name: d.name, Used: d.rows != nil} })
	return s, err
}

func (d *database) Records(context.Context) (backup.Records, error) {
	return reading{d}, d.of.step(func() {})
}

func (d *database) Sums(context.Context) (move.Sums, error) {
	a := move.NewAdder()
	for _, row := range d.rows {
		a.Text(row)
		a.EndRow()
	}
	return move.Sums{Tables: map[string]move.Sum{"nodes": a.Sum()}, Numbers: map[string]int64{"nodes": 9}}, nil // it only reads, beside others
}

func (d *database) Leave(_ context.Context, m move.Mark) error {
	return d.of.step(func() { d.mark = m })
}

func (d *database) Arrive(context.Context, move.Mark) error {
	return d.of.step(func() { d.mark = move.Mark{} })
}

func (d *database) Loader(_ context.Context, _ backup.Schema, m move.Mark) (backup.Loader, error) {
	return &loading{of: d, mark: m}, d.of.step(func() { d.rows, d.mark = nil, move.Mark{} })
}

type reading struct{ *database }

func (r reading) Begin(context.Context) error { return nil }

func (r reading) Describe(context.Context) (backup.Schema, []backup.Table, error) {
	return backup.Schema{Number: 7}, []backup.Table{{Name: "nodes", Columns: []string{"name"}}}, nil
}

func (r reading) Rows(_ context.Context, _ backup.Table, each func([]any) error) error {
	for _, row := range r.rows {
		if err := each([]any{row}); err != nil {
			return err
		}
	}
	return nil
}

func (r reading) Sequences(context.Context) (map[string]int64, error) {
	return map[string]int64{"nodes": 9}, nil
}

func (r reading) Close() error { return nil }

type loading struct {
	of   *database
	mark move.Mark
	rows []string
}

func (l *loading) Load(_ context.Context, _ backup.Table, rows iter.Seq2[[]any, error]) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		text, _ := row[0].(string)
		if l.of.bad && text == "b" {
			text = "B"
		}
		l.rows = append(l.rows, text)
	}
	return l.of.of.step(func() {})
}

func (l *loading) Finish(context.Context, map[string]int64) error {
	return l.of.of.step(func() { l.of.rows, l.of.mark = l.rows, l.mark })
}

func (l *loading) Close() error { return nil }

var rows = []string{"a", "b", "c"}

func newWorld() *world {
	w := &world{}
	w.from, w.to = database{name: "old", rows: slices.Clone(rows), of: w}, database{name: "new", of: w}
	return w
}

func (w *world) run(t *testing.T, id string) (move.Result, error) {
	t.Helper()
	return move.Run(t.Context(), move.Plan{
		From: &w.from, To: &w.to, ID: id, Now: time.Unix(1, 0), Progress: func(string, int64, int64) {},
		Ready: func(context.Context) error { return w.step(func() {}) },
	})
}

// usable is the databases that a server would start on with rows.
func (w *world) usable() (names []string) {
	for _, d := range []database{w.from, w.to} {
		if d.mark.Refuse() == nil && d.rows != nil {
			names = append(names, d.name)
		}
	}
	return names
}

// Whenever a move is killed, at most one of the two databases is of use, it has all rows, and the same move run again ends.
func TestAMoveIsKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	whole := newWorld()
	if _, err := whole.run(t, "1"); err != nil {
		t.Fatal(err)
	}
	if whole.steps < 14 {
		t.Fatalf("a move has %d steps", whole.steps)
	}
	for killAt := 1; killAt <= whole.steps; killAt++ {
		w := newWorld()
		w.killAt = killAt
		if _, err := w.run(t, "1"); !errors.Is(err, errKilled) {
			t.Fatalf("killed at %d: %v", killAt, err)
		}
		switch usable := w.usable(); {
		case len(usable) > 1:
			t.Errorf("killed at %d: a server starts on both", killAt)
		case slices.Contains(usable, "new") && w.from.mark.State != move.Left:
			t.Errorf("killed at %d: the new one counts, and the old one does not know it", killAt)
		}
		if diff := cmp.Diff(rows, w.from.rows); diff != "" {
			t.Errorf("killed at %d: the old rows (-want +got):\n%s", killAt, diff)
		}
		w.killAt = 0
		r, err := w.run(t, "2")
		if err != nil {
			t.Errorf("killed at %d, and run again: %v", killAt, err)
		}
		if diff := cmp.Diff([]string{"new"}, w.usable()); diff != "" {
			t.Errorf("killed at %d, and run again with step %d: usable (-want +got):\n%s", killAt, r.Step, diff)
		}
		if diff := cmp.Diff(rows, w.to.rows); diff != "" {
			t.Errorf("killed at %d: the new rows (-want +got):\n%s", killAt, diff)
		}
	}
}

// A value that was lost on its way is found, and the old records stay in use.
func TestAMistakeIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.to.bad = true
	_, err := w.run(t, "1")
	if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Detail(err), "a row of table nodes has other values") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"old"}, w.usable()); diff != "" {
		t.Errorf("usable (-want +got):\n%s", diff)
	}
	w.to.bad = false
	if _, err := w.run(t, "2"); err != nil {
		t.Error(err)
	}
}

func TestSumsSayWhatDiffers(t *testing.T) {
	t.Parallel()
	sums := func(number int64, tables map[string][]string) move.Sums {
		s := move.Sums{Tables: map[string]move.Sum{}, Numbers: map[string]int64{"a": number}}
		for name, rows := range tables {
			a := move.NewAdder()
			for _, row := range rows {
				for value := range strings.SplitSeq(row, ",") {
					a.Text(value)
				}
				a.EndRow()
			}
			s.Tables[name] = a.Sum()
		}
		return s
	}
	had := sums(5, map[string][]string{"a": {"1", "2", "3"}, "b": {"x,y"}, "c": nil})
	for says, has := range map[string]move.Sums{
		"":                                   sums(5, map[string][]string{"a": {"3", "1", "2"}, "b": {"x,y"}, "c": nil}), // in another order
		"table a has 2 rows instead of 3":    sums(5, map[string][]string{"a": {"1", "2"}, "b": {"x,y"}, "c": nil}),
		"table a has 1 row instead of 3":     sums(5, map[string][]string{"a": {"1"}, "b": {"x,y"}, "c": nil}),
		"a row of table a has other values":  sums(5, map[string][]string{"a": {"1", "2", "2"}, "b": {"x,y"}, "c": nil}),
		"the row of table b has other value": sums(5, map[string][]string{"a": {"1", "2", "3"}, "b": {"xy,"}, "c": nil}), // the same bytes
		"table c is missing":                 sums(5, map[string][]string{"a": {"1", "2", "3"}, "b": {"x,y"}}),
		"there is a further table d":         sums(5, map[string][]string{"a": {"1", "2", "3"}, "b": {"x,y"}, "c": nil, "d": nil}),
		"goes on behind number 4 instead of": sums(4, map[string][]string{"a": {"1", "2", "3"}, "b": {"x,y"}, "c": nil}),
	} {
		err := move.Compare(had, has)
		if says == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Detail(err), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	mark := func(id string, s move.State, other string) move.Mark {
		return move.Mark{ID: id, State: s, Other: other}
	}
	for name, c := range map[string]struct {
		from, to move.Standing
		step     move.Step
		refused  string
	}{
		"nothing yet": {move.Standing{Used: true}, move.Standing{}, move.Copy, ""},
		"killed once": {move.Standing{Used: true}, move.Standing{Used: true, Mark: mark("1", move.Arriving, "old")}, move.Copy, ""},
		"another's":   {move.Standing{Used: true}, move.Standing{Used: true, Mark: mark("1", move.Arriving, "older")}, 0, "a move from older that did not end"},
		"full":        {move.Standing{Used: true}, move.Standing{Used: true}, 0, "nothing is overwritten"},
		"left":        {move.Standing{Used: true}, move.Standing{Used: true, Mark: mark("0", move.Left, "old")}, 0, "new holds records that moved to old"},
		"the last step": {
			move.Standing{Used: true, Mark: mark("1", move.Left, "new")}, move.Standing{Used: true, Mark: mark("1", move.Arriving, "old")}, move.Confirm, "",
		},
		"done":      {move.Standing{Used: true, Mark: mark("1", move.Left, "new")}, move.Standing{Used: true}, move.Done, ""},
		"gone":      {move.Standing{Used: true, Mark: mark("1", move.Left, "new")}, move.Standing{}, 0, "where they are no more"},
		"elsewhere": {move.Standing{Used: true, Mark: mark("1", move.Left, "third")}, move.Standing{}, 0, "moved to third"},
		"not arrived": {
			move.Standing{Used: true, Mark: mark("1", move.Arriving, "first")}, move.Standing{}, 0, "the move from first into this database did not end",
		},
		"another last step": {
			move.Standing{Used: true, Mark: mark("1", move.Left, "new")}, move.Standing{Used: true, Mark: mark("2", move.Arriving, "old")}, 0, "where they are no more",
		},
	} {
		c.from.Name, c.to.Name = "old", "new"
		step, err := move.Next(c.from, c.to)
		if c.refused == "" {
			if err != nil || step != c.step {
				t.Errorf("%s: %d, %v", name, step, err)
			}
			continue
		}
		if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Detail(err), c.refused) {
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
	}
}
