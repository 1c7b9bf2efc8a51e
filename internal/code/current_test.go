package code_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint"
)

// watched counts the questions for current versions, and can hold an answer
// back after the rows gave it.
type watched struct {
	*codetest.Store
	asked atomic.Int64
	hold  func() // nil: answer at once
}

func (w *watched) CurrentVersion(ctx context.Context, env fleet.Environment) (code.Version, error) {
	w.asked.Add(1)
	v, err := w.Store.CurrentVersion(ctx, env)
	if w.hold != nil {
		w.hold()
	}
	return v, err
}

// servers is two libraries on the same rows and blobs, as on two machines.
func servers() (here, there shelf, rows *watched) {
	rows = &watched{Store: codetest.New()}
	blobs := castest.New()
	here = shelf{Library: code.NewLibrary(rows, blobs), blobs: blobs, rows: rows}
	there = shelf{Library: code.NewLibrary(rows.Store, blobs), blobs: blobs, rows: rows.Store}
	return here, there, rows
}

// release deploys a version that is told from others by its text.
func (s shelf) release(t *testing.T, text string) code.VersionID {
	t.Helper()
	digest, size, err := s.blobs.Put(t.Context(), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Deploy(t.Context(), code.Deployment{Environment: "production", At: time.Now(), Manifest: code.Manifest{
		ModulePath: []string{"modules"}, Files: []code.File{{Path: "manifests/site.pp", Digest: digest, Size: size}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return v.ID
}

func (s shelf) wantCurrent(t *testing.T, want code.VersionID) {
	t.Helper()
	tree, err := s.Current(t.Context(), "production")
	if err != nil {
		t.Fatal(err)
	}
	if tree.ID() != want {
		t.Errorf("the current version is %s, want %s", tree.ID().Short(), want.Short())
	}
}

func TestCurrentAsksTheRowsOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, _, rows := servers()
		one := here.release(t, "one")
		rows.asked.Store(0)
		for range 100 {
			here.wantCurrent(t, one)
		}
		if n := rows.asked.Load(); n != 1 {
			t.Errorf("the rows were asked %d times for 100 files", n)
		}
		<-time.After(time.Second)
		here.wantCurrent(t, one)
		if n := rows.asked.Load(); n != 2 {
			t.Errorf("the rows were asked %d times after a second", n)
		}
	})
}

func TestCurrentSeesItsOwnChangesAtOnceAndOthersSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there, _ := servers()
		here.wantCurrent(t, here.release(t, "one"))
		here.wantCurrent(t, here.release(t, "two"))

		three := there.release(t, "three")
		<-time.After(time.Second)
		here.wantCurrent(t, three)

		four := there.release(t, "four")
		if v, err := here.Refresh(t.Context(), "production"); err != nil || v.ID != four {
			t.Errorf("Refresh gave %v, %v", v.ID, err)
		}
		here.wantCurrent(t, four) // whoever got a catalog of it gets its files

		if err := here.Remove(t.Context(), "production"); err != nil {
			t.Fatal(err)
		}
		_, err := here.Current(t.Context(), "production")
		wantKind(t, err, fault.NotFound)
		wantKind(t, here.Remove(t.Context(), "production"), fault.NotFound)
		here.wantCurrent(t, here.release(t, "five")) // that it was missing is not kept
	})
}

// TestAnAnswerFromBeforeADeployIsNotKept lets a deploy come between the rows'
// answer and its keeping.
func TestAnAnswerFromBeforeADeployIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, _, rows := servers()
		one := here.release(t, "one")
		answered, goOn := make(chan struct{}), make(chan struct{})
		rows.hold = func() { close(answered); <-goOn }
		late := make(chan code.VersionID)
		go func() {
			v, _ := here.Refresh(t.Context(), "production")
			late <- v.ID
		}()
		<-answered
		rows.hold = nil
		two := here.release(t, "two")
		close(goOn)
		if got := <-late; got != one {
			t.Errorf("the late answer is %s, want that of before", got.Short())
		}
		here.wantCurrent(t, two)
	})
}

// Servers that hear of each other see a deploy at once, and not when what they know has become old.
func TestADeployElsewhereIsHeardOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there, _ := servers()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var relays [2]*hint.Relay
		for i := range relays {
			relays[i] = hint.NewRelay(func(data []byte) error { relays[1-i].Heard(data); return nil })
		}
		for _, r := range relays {
			go func() { _ = r.Run(ctx) }()
		}
		here.Share(relays[0])
		there.Share(relays[1])
		here.wantCurrent(t, there.release(t, "one"))
		two := there.release(t, "two")
		<-time.After(20 * time.Millisecond)
		here.wantCurrent(t, two)
	})
}
