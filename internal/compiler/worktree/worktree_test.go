package worktree_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/compiler/worktree"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/blobdir"
)

// stores are a store that links on the same disk, and one that is not a Linker.
func stores(tb testing.TB) map[string]cas.Store {
	tb.Helper()
	disk, err := blobdir.Open(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = disk.Close() })
	return map[string]cas.Store{"links": disk, "copies": struct{ cas.Store }{castest.New()}}
}

var sample = map[string]string{
	"manifests/site.pp":      "notice('x')\n",
	"modules/a/files/f":      "f",
	"modules/a/files/same":   "f",
	"modules/a/files/empty":  "",
	"modules/a/tasks/run.sh": "#!/bin/sh\n",
}

// version stores the sample (with one more file, to tell versions apart).
func version(tb testing.TB, library *code.Library, blobs cas.Store, name string) code.VersionID {
	tb.Helper()
	m := code.Manifest{ModulePath: []string{"modules"}}
	files := map[string]string{"name": name}
	maps.Copy(files, sample)
	for p, content := range files {
		d, n, err := blobs.Put(tb.Context(), strings.NewReader(content))
		if err != nil {
			tb.Fatal(err)
		}
		m.Files = append(m.Files, code.File{Path: p, Digest: d, Size: n, Executable: strings.HasSuffix(p, ".sh")})
	}
	m.Files = append(m.Files, code.File{Path: "empty", Kind: code.Dir}, code.File{Path: "modules/a/files/link", Kind: code.Link, Target: "f"})
	slices.SortFunc(m.Files, func(a, b code.File) int { return strings.Compare(a.Path, b.Path) })
	v, err := library.Deploy(tb.Context(), code.Deployment{Environment: "production", Manifest: m})
	if err != nil {
		tb.Fatal(err)
	}
	return v.ID
}

func TestPathHoldsExactlyTheVersion(t *testing.T) {
	t.Parallel()
	for name, blobs := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := code.NewLibrary(codetest.New(), blobs)
			id := version(t, library, blobs, "x")
			w := open(t, t.TempDir(), library, blobs)
			dir, release, err := w.Path(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			bundle, err := code.Build(t.Context(), dir, code.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			bundle.Manifest.ModulePath = []string{"modules"}
			if again, err := code.VersionOf(bundle.Manifest); err != nil || again != id {
				t.Errorf("what was checked out is version %s, %v; want %s", again, err, id)
			}
			f, err := os.Stat(filepath.Join(dir, "modules/a/files/f"))
			if err != nil || f.Mode()&0o222 != 0 {
				t.Errorf("%v, %v: it should be read-only", f, err)
			}
		})
	}
}

func open(tb testing.TB, dir string, manifests worktree.Manifests, blobs cas.Store) *worktree.Worktree {
	tb.Helper()
	w, err := worktree.New(dir, manifests, blobs)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// counting counts how often a manifest is read, and can make readers wait.
type counting struct {
	*code.Library
	read atomic.Int32
	wait chan struct{}
}

func (c *counting) Manifest(ctx context.Context, id code.VersionID) (code.Manifest, error) {
	c.read.Add(1)
	if c.wait != nil {
		<-c.wait
	}
	return c.Library.Manifest(ctx, id)
}

func TestConcurrentCallersShareOneBuild(t *testing.T) {
	t.Parallel()
	blobs := castest.New()
	manifests := &counting{Library: code.NewLibrary(codetest.New(), blobs)}
	id := version(t, manifests.Library, blobs, "x")
	w := open(t, t.TempDir(), manifests, blobs)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			dir, release, err := w.Path(t.Context(), id)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if _, err := os.Stat(filepath.Join(dir, "modules/a/tasks/run.sh")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := manifests.read.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}

func TestABuildGoesOnWithoutTheFirstCaller(t *testing.T) {
	t.Parallel()
	blobs := castest.New()
	manifests := &counting{Library: code.NewLibrary(codetest.New(), blobs), wait: make(chan struct{})}
	id := version(t, manifests.Library, blobs, "x")
	w := open(t, t.TempDir(), manifests, blobs)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := w.Path(ctx, id); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	close(manifests.wait)
	if _, release, err := w.Path(t.Context(), id); err != nil {
		t.Error(err)
	} else {
		release()
	}
}

func TestPruneSparesWhatIsHeldOrKept(t *testing.T) {
	t.Parallel()
	blobs := castest.New()
	library := code.NewLibrary(codetest.New(), blobs)
	w := open(t, t.TempDir(), library, blobs)
	dirs, releases := map[string]string{}, map[string]func(){}
	ids := map[string]code.VersionID{}
	for _, name := range []string{"held", "kept", "gone"} {
		ids[name] = version(t, library, blobs, name)
		dir, release, err := w.Path(t.Context(), ids[name])
		if err != nil {
			t.Fatal(err)
		}
		dirs[name], releases[name] = dir, release
	}
	releases["kept"]()
	releases["gone"]()
	releases["gone"]() // twice is once
	keep := func(id code.VersionID) bool { return id == ids["kept"] }
	if n, err := w.Prune(t.Context(), keep); n != 1 || err != nil {
		t.Errorf("pruned %d, %v; want 1", n, err)
	}
	for name, dir := range dirs {
		if _, err := os.Stat(dir); (err == nil) == (name == "gone") {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir, release, err := w.Path(t.Context(), ids["gone"]) // it can be built again
	if err != nil || dir != dirs["gone"] {
		t.Fatalf("%s, %v", dir, err)
	}
	release()
}

func TestPruneAgainstPath(t *testing.T) {
	t.Parallel()
	blobs := castest.New()
	library := code.NewLibrary(codetest.New(), blobs)
	id := version(t, library, blobs, "x")
	w := open(t, t.TempDir(), library, blobs)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 30 {
				dir, release, err := w.Path(t.Context(), id)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(filepath.Join(dir, "name")); err != nil {
					t.Errorf("pruned under its holder: %v", err)
				}
				release()
			}
		})
		wg.Go(func() {
			for range 30 {
				if _, err := w.Prune(t.Context(), func(code.VersionID) bool { return false }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAFailedBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	blobs := castest.New()
	library := code.NewLibrary(codetest.New(), blobs)
	id := version(t, library, blobs, "x")
	lost := fleet.DigestOf([]byte("f"))
	if _, _, err := blobs.Sweep(t.Context(), func(d fleet.Digest) bool { return d != lost }, farFuture()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := open(t, dir, library, blobs)
	if _, _, err := w.Path(t.Context(), id); fault.Of(err) != fault.NotFound {
		t.Errorf("got %v, want NotFound", err)
	}
	if _, _, err := w.Path(t.Context(), fleet.DigestOf([]byte("no version"))); fault.Of(err) != fault.NotFound {
		t.Errorf("got %v, want NotFound", err)
	}
	if _, _, err := w.Path(t.Context(), "../../etc"); fault.Of(err) != fault.Invalid {
		t.Errorf("got %v, want Invalid", err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "tmp", "*"))
	if _, err := os.Stat(filepath.Join(dir, string(id))); err == nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestStartClearsWhatAKilledProcessLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	half := filepath.Join(dir, "tmp", "half", "modules")
	torn := filepath.Join(dir, string(fleet.DigestOf([]byte("torn"))))
	other := filepath.Join(dir, "somebody's")
	for _, name := range []string{half, torn, other} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir, code.NewLibrary(codetest.New(), castest.New()), castest.New())
	for name, stays := range map[string]bool{half: false, torn: false, other: true} {
		if _, err := os.Stat(name); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkCheckout10000(b *testing.B) {
	blobs := stores(b)["links"]
	library := code.NewLibrary(codetest.New(), blobs)
	m := code.Manifest{ModulePath: []string{"modules"}}
	for i := range 10_000 {
		content := fmt.Appendf(nil, "content %d", i%500)
		d := fleet.DigestOf(content)
		if i < 500 {
			if err := blobs.PutAs(b.Context(), d, bytes.NewReader(content)); err != nil {
				b.Fatal(err)
			}
		}
		m.Files = append(m.Files, code.File{Path: fmt.Sprintf("modules/m%02d/files/%05d", i/200, i), Digest: d, Size: int64(len(content))})
	}
	v, err := library.Deploy(b.Context(), code.Deployment{Environment: "production", Manifest: m})
	if err != nil {
		b.Fatal(err)
	}
	w := open(b, b.TempDir(), library, blobs)
	for b.Loop() {
		_, release, err := w.Path(b.Context(), v.ID)
		if err != nil {
			b.Fatal(err)
		}
		release()
		b.StopTimer()
		if _, err := w.Prune(b.Context(), func(code.VersionID) bool { return false }); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func farFuture() time.Time { return time.Now().Add(time.Hour) }
