package code_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/blobdir"
)

// shelf is a library and what is under it.
type shelf struct {
	*code.Library
	blobs cas.Store
	rows  code.Store
}

func newShelf() shelf {
	s := shelf{blobs: castest.New(), rows: codetest.New()}
	s.Library = code.NewLibrary(s.rows, s.blobs)
	return s
}

func (s shelf) deploy(t *testing.T, env fleet.Environment, dir string, opt code.BuildOptions) (code.Version, *code.Tree) {
	t.Helper()
	bundle, err := code.Build(t.Context(), dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Upload(t.Context(), s.blobs); err != nil {
		t.Fatal(err)
	}
	v, err := s.Deploy(t.Context(), code.Deployment{Environment: env, Manifest: bundle.Manifest, At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.Current(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return v, tree
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("got %v (%v), want %v", err, fault.Of(err), want)
	}
}

func newDiskShelf(tb testing.TB) shelf {
	tb.Helper()
	disk, err := blobdir.Open(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = disk.Close() })
	s := shelf{blobs: disk, rows: codetest.New()}
	s.Library = code.NewLibrary(s.rows, s.blobs)
	return s
}

func TestDeployNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	s, dir := newShelf(), t.TempDir()
	writeFiles(t, dir, map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"})
	bundle := build(t, dir, code.BuildOptions{})
	_, err := s.Deploy(t.Context(), code.Deployment{Environment: "production", Manifest: bundle.Manifest})
	wantKind(t, err, fault.Conflict)
	if want := "5 of the version's contents are not stored, the first ones are of a, b, c"; !strings.Contains(fault.Detail(err), want) {
		t.Errorf("%q does not say %q", fault.Detail(err), want)
	}
	_, err = s.Current(t.Context(), "production")
	wantKind(t, err, fault.NotFound)
}

func TestDeployRefuses(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]code.Deployment{
		"an environment's name": {Environment: "../x"},
		"a long commit":         {Environment: "production", Commit: strings.Repeat("0", 1000)},
		"a bad manifest":        {Environment: "production", Manifest: code.Manifest{Files: []code.File{{Path: "/x"}}}},
	} {
		if _, err := newShelf().Deploy(t.Context(), d); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}

func TestCurrentFollowsDeploys(t *testing.T) {
	t.Parallel()
	s, dir := newShelf(), t.TempDir()
	writeFiles(t, dir, map[string]string{"modules/a/files/f": "1"})
	first, one := s.deploy(t, "production", dir, code.BuildOptions{})
	writeFiles(t, dir, map[string]string{"modules/a/files/f": "2"})
	second, two := s.deploy(t, "production", dir, code.BuildOptions{})
	if first.ID == second.ID || one.ID() != first.ID || two.ID() != second.ID || two.Environment() != "production" {
		t.Errorf("%v, %v, %v, %v", first, second, one.ID(), two.ID())
	}
	old, err := s.Tree(t.Context(), "production", first.ID)
	if err != nil || old != one {
		t.Errorf("the older version is another tree: %v", err)
	}
	if f, err := old.Content("modules", "a/f"); err != nil || f.Digest != fleet.DigestOf([]byte("1")) {
		t.Errorf("%+v, %v", f, err)
	}
	_, err = s.Tree(t.Context(), "production", someDigest)
	wantKind(t, err, fault.NotFound)
	current, err := s.Current(t.Context(), "production")
	if err != nil || current.ID() != second.ID {
		t.Errorf("%v, %v", current, err)
	}
}

func TestTreesAreBoundedAndShared(t *testing.T) {
	t.Parallel()
	s, dir := newShelf(), t.TempDir()
	writeFiles(t, dir, map[string]string{"modules/a/files/f": "1"})
	v, first := s.deploy(t, "e0", dir, code.BuildOptions{})
	for i := range 40 {
		if _, err := s.Tree(t.Context(), fleet.Environment(fmt.Sprintf("e%d", i+1)), v.ID); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Trees(); n != 16 {
		t.Errorf("%d trees are kept", n)
	}
	again, err := s.Tree(t.Context(), "e0", v.ID)
	if err != nil || again == first {
		t.Errorf("%p, %v: it should have been forgotten", again, err)
	}
}

func TestSweepKeepsWhatIsReferredTo(t *testing.T) {
	t.Parallel()
	s, dir := newShelf(), t.TempDir()
	writeFiles(t, dir, map[string]string{"a": "1", "l@": "a"})
	v, _ := s.deploy(t, "production", dir, code.BuildOptions{})
	extra, _, _ := s.blobs.Put(t.Context(), strings.NewReader("a catalog"))
	if _, _, err := s.blobs.Put(t.Context(), strings.NewReader("garbage")); err != nil {
		t.Fatal(err)
	}
	alive := func(_ context.Context, keep func(fleet.Digest)) error {
		keep(extra)
		return nil
	}
	if n, size, err := s.Sweep(t.Context(), time.Hour, alive); n != 0 || size != 0 || err != nil {
		t.Errorf("young: %d, %d, %v", n, size, err)
	}
	if n, size, err := s.Sweep(t.Context(), 0, alive); n != 1 || size != 7 || err != nil {
		t.Errorf("swept %d blobs of %d bytes, %v; want 1 of 7", n, size, err)
	}
	if missing, err := s.blobs.Missing(t.Context(), []fleet.Digest{v.ID, fleet.DigestOf([]byte("1")), extra}); err != nil || len(missing) != 0 {
		t.Errorf("lost: %v, %v", missing, err)
	}
	failing := errors.New("the catalogs cannot be listed")
	_, _, err := s.Sweep(t.Context(), 0, func(context.Context, func(fleet.Digest)) error { return failing })
	if !errors.Is(err, failing) {
		t.Errorf("got %v", err)
	}
}

// What a deploy acknowledged is complete, however often the collector runs.
func TestSweepAgainstDeploy(t *testing.T) {
	t.Parallel()
	s := newDiskShelf(t)
	ctx, cancel := context.WithCancel(t.Context())
	var collector, deployers sync.WaitGroup
	collector.Go(func() {
		for ctx.Err() == nil {
			if _, _, err := s.Sweep(ctx, 0, nil); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 3 {
		deployers.Go(func() { deployUnderSweep(t, s, i) })
	}
	deployers.Wait()
	cancel()
	collector.Wait()
}

func deployUnderSweep(t *testing.T, s shelf, i int) {
	t.Helper()
	for n := range 15 {
		content := fmt.Appendf(nil, "%d %d", i, n)
		d := fleet.DigestOf(content)
		m := code.Manifest{Files: []code.File{{Path: "f", Digest: d, Size: int64(len(content))}}}
		v, err := s.Deploy(t.Context(), code.Deployment{Environment: fleet.Environment(fmt.Sprint("e", i)), Manifest: m})
		for fault.Of(err) == fault.Conflict { // swept again before the deploy: as a client would
			if err := s.blobs.PutAs(t.Context(), d, bytes.NewReader(content)); err != nil {
				t.Error(err)
				return
			}
			v, err = s.Deploy(t.Context(), code.Deployment{Environment: fleet.Environment(fmt.Sprint("e", i)), Manifest: m})
		}
		if err != nil {
			t.Error(err)
			return
		}
		for _, want := range []fleet.Digest{d, v.ID} {
			if _, err := cas.Bytes(t.Context(), s.blobs, want, 1000); err != nil {
				t.Errorf("deployed, then lost: %v", err)
			}
		}
	}
}

// Agents are told the sizes that a manifest says: one that says another than its content has is refused.
func TestAManifestWithAWrongSizeIsRefused(t *testing.T) {
	t.Parallel()
	s := newShelf()
	digest, _, err := s.blobs.Put(t.Context(), strings.NewReader("five!"))
	if err != nil {
		t.Fatal(err)
	}
	deploy := func(size int64) error {
		m := code.Manifest{ModulePath: []string{"modules"}, Files: []code.File{{Path: "manifests/site.pp", Digest: digest, Size: size}}}
		d := code.Deployment{Environment: "production", Manifest: m, At: time.Now()}
		if _, err := s.Stage(t.Context(), d); (err == nil) != (size == 5) {
			t.Errorf("staged with size %d: %v", size, err)
		}
		_, err := s.Deploy(t.Context(), d)
		return err
	}
	for _, size := range []int64{0, 4, 6, 5, 4} {
		if err := deploy(size); size == 5 && err != nil {
			t.Errorf("the right size: %v", err)
		} else if size != 5 {
			wantKind(t, err, fault.Invalid)
		}
	}
}
