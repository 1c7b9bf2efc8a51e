package pdbdiff_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/bench/rivals"
)

// While questions are written one PuppetDB can serve many runs:
//
//	go test ./e2e/pdbdiff -run Same -timeout 0 -args -hold                       # prints its address
//	go test ./e2e/pdbdiff -run Same -args -puppetdb http://127.0.0.1:PORT
var (
	running = flag.String("puppetdb", "", "ask this PuppetDB, which an earlier run filled, rather than start one")
	hold    = flag.Bool("hold", false, "keep PuppetDB running until the test is interrupted")
)

// limit is how long starting and filling the servers may take.
const limit = 25 * time.Minute

func TestSameAsPuppetDB(t *testing.T) {
	t.Parallel()
	questions := readQuestions(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	theirs, ours := start(ctx, t)
	if err := theirs.learnVersion(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("PuppetDB %d, %d questions", theirs.major, len(questions))
	if *hold {
		t.Logf("PuppetDB runs at %s", theirs.url)
		<-t.Context().Done()
	}
	rows := documentedRows(t)
	checkLooseRows(t, rows)
	for _, q := range questions {
		t.Run(q.place+" "+q.name, func(t *testing.T) {
			t.Parallel()
			compare(t, q, rows, theirs, ours)
		})
	}
}

// start starts and fills PuppetDB, and Tutti on both of its databases.
func start(ctx context.Context, t *testing.T) (theirs *server, ours []*server) {
	t.Helper()
	dir := t.TempDir()
	open(t, dir)
	binary, err := rivals.BuildTutti(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	ours = append(ours, startTutti(ctx, t, binary, filepath.Join(dir, "tutti on sqlite")))
	group, ctx := errgroup.WithContext(ctx)
	if *running != "" {
		theirs = existing(*running)
		group.Go(func() error { return theirs.learnHashes(ctx) })
	} else {
		var db *rivals.PuppetDB
		theirs, db = startPuppetDB(ctx, t, filepath.Join(dir, "puppetdb"))
		group.Go(func() error { return theirs.fill(ctx) })
		if err := db.Postgres().MakeDatabase(ctx, "tutti"); err != nil {
			t.Fatal(err)
		}
		ours = append(ours, startTutti(ctx, t, binary, filepath.Join(dir, "tutti on postgresql"), "--database", db.Postgres().URL("tutti")))
	}
	for _, s := range ours {
		group.Go(func() error { return s.fill(ctx) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return theirs, ours
}

// open lets PostgreSQL, which runs as another user, reach its directory.
func open(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "puppetdb"), 0o711); err != nil {
		t.Fatal(err)
	}
}

// checkLooseRows makes sure that what is not compared is explained.
func checkLooseRows(t *testing.T, rows map[string]bool) {
	t.Helper()
	for _, l := range looseFields {
		if l.row != "" && !rows[l.row] {
			t.Errorf("the page of differences has no row %q, which %s.%s names", l.row, l.entity, l.field)
		}
	}
}

// compare puts one question to every server.
func compare(t *testing.T, q question, rows map[string]bool, theirs *server, ours []*server) {
	t.Helper()
	if q.row != "" && !rows[q.row] {
		t.Errorf("docs/puppetdb-compatibility.md has no row %q", q.row)
	}
	a, err := theirs.ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range ours {
		b, err := s.ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		judge(t, q, theirs, s, a, b)
	}
}

// judge holds two answers against what the question says of them.
func judge(t *testing.T, q question, theirs, ours *server, a, b answer) {
	t.Helper()
	found := differences(q, theirs, ours, a, b)
	verdict := q.verdict
	if q.before != 0 && theirs.major >= q.before {
		verdict = "same"
	}
	switch verdict {
	case "differs":
		if len(found) == 0 {
			t.Errorf("%s now answers as PuppetDB does: say `same`", ours.name)
		}
		if err := q.theirs.fits(theirs, q, a); err != nil {
			t.Error(err)
		}
		if err := q.ours.fits(ours, q, b); err != nil {
			t.Error(err)
		}
	case "same status":
		if a.status != b.status || a.status < 400 {
			t.Errorf("status %d, %d\ntheirs: %.600s\nours:   %.600s", a.status, b.status, a.body, b.body)
		} else if len(found) == 0 {
			t.Errorf("the texts are the same now: say `same`: %s", a.body)
		}
	default:
		for _, text := range found {
			t.Error(text)
		}
	}
}

// TestEnoughQuestions holds the collection to its size.
func TestEnoughQuestions(t *testing.T) {
	t.Parallel()
	questions := readQuestions(t)
	wrong := 0
	seen := map[string]string{}
	for _, q := range questions {
		if q.wrong() {
			wrong++
		}
		key := q.method + q.path + "?" + q.params.Encode() + " " + q.body
		if earlier := seen[key]; earlier != "" {
			t.Errorf("%s asks the same as %s", q.place, earlier)
		}
		seen[key] = q.place
	}
	if len(questions) < 300 || wrong < 70 {
		t.Errorf("%d questions, %d of them wrong; want at least 300 and 70", len(questions), wrong)
	}
}
