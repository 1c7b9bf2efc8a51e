package compile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

var version2 = fleet.DigestOf([]byte("newer code"))

// warmer runs a warmer over w's fakes.
func (w *world) warmer(t *testing.T) (warmer *compile.Warmer, stop func()) {
	t.Helper()
	warmer, err := compile.NewWarmer(compile.WarmerParts{
		Compiler: w.compiler, History: w.queue, Orders: compile.Orders{Inputs: w.facts}, Environments: w.versions,
	}, compile.DefaultWarmer())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = warmer.Run(ctx)
	}()
	return warmer, func() {
		cancel()
		<-ended
	}
}

// warmed lists the calls of Warm as "environment version".
func (w *world) warmed() []string {
	var got []string
	for _, c := range w.compiler.Warmings() {
		got = append(got, string(c.Environment)+" "+c.Version.Short())
	}
	return got
}

func TestWarmerWarmsAtStartAndAfterDeploys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		warmer, stop := w.warmer(t)
		defer stop()
		synctest.Wait()
		warmer.Deployed(production, version1) // known already
		synctest.Wait()
		warmer.Deployed(production, version2)
		synctest.Wait()
		warmer.Deployed("testing", version1)
		synctest.Wait()
		want := []string{"production " + version1.Short(), "production " + version2.Short(), "testing " + version1.Short()}
		if diff := cmp.Diff(want, w.warmed()); diff != "" {
			t.Errorf("warmed (-want +got):\n%s", diff)
		}
	})
}

// What another server deployed is warmed, too: at once where it is heard of, and within minutes where the hint is lost.
func TestWarmerWarmsWhatOthersDeploy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		warmer, stop := w.warmer(t)
		defer stop()
		synctest.Wait()
		w.versions.Set(production, version2)
		<-time.After(2 * time.Minute)
		want := []string{"production " + version1.Short(), "production " + version2.Short()}
		if diff := cmp.Diff(want, w.warmed()); diff != "" {
			t.Errorf("nothing was heard (-want +got):\n%s", diff)
		}
		w.versions.Set("testing", version1)
		warmer.Heard()
		synctest.Wait()
		if diff := cmp.Diff(append(want, "testing "+version1.Short()), w.warmed()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
		warmer.Heard() // of nothing new
		<-time.After(time.Hour)
		if n := len(w.warmed()); n != 3 {
			t.Errorf("warm environments were warmed again: %v", w.warmed())
		}
	})
}

func TestWarmerTakesSamples(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, node := range []fleet.Certname{"a", "b"} {
			w.want(t, node, compile.Background)
		}
		stop := w.start(t.Context())
		synctest.Wait()
		stop()
		_, stop = w.warmer(t)
		defer stop()
		synctest.Wait()
		warmings := w.compiler.Warmings()
		if len(warmings) != 1 || len(warmings[0].Samples) != 2 {
			t.Fatalf("warmings: %+v", warmings)
		}
		for _, o := range warmings[0].Samples {
			if o.Version != version1 || o.Transaction != "" || string(o.Facts) != `{"os":"debian"}` {
				t.Errorf("a sample is %+v", o)
			}
		}
	})
}

func TestWarmerDropsWhatIsDeployedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var ended []error
		w.compiler.OnWarm(func(ctx context.Context, c compiletest.Warming) error {
			if c.Version == version1 {
				<-ctx.Done()
				ended = append(ended, ctx.Err())
			}
			return ctx.Err()
		})
		warmer, stop := w.warmer(t)
		defer stop()
		synctest.Wait()
		warmer.Deployed(production, version2)
		synctest.Wait()
		if len(ended) != 1 || !errors.Is(ended[0], context.Canceled) {
			t.Errorf("the older version's warming: %v", ended)
		}
		if diff := cmp.Diff([]string{"production " + version1.Short(), "production " + version2.Short()}, w.warmed()); diff != "" {
			t.Errorf("warmed (-want +got):\n%s", diff)
		}
	})
}

func TestWarmerTriesAgainAndGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.OnWarm(func(_ context.Context, c compiletest.Warming) error {
			if c.Environment == production {
				return errors.New("no")
			}
			return nil
		})
		warmer, stop := w.warmer(t)
		defer stop()
		synctest.Wait()
		warmer.Deployed("testing", version1) // is not held up
		synctest.Wait()
		if n := len(w.warmed()); n != 2 {
			t.Errorf("at once: %v", w.warmed())
		}
		<-time.After(time.Hour)
		if n := len(w.warmed()); n != 4 {
			t.Errorf("production was tried %d times, want 3", n-1)
		}
		warmer.Deployed(production, version2)
		synctest.Wait()
		if n := len(w.warmed()); n != 5 {
			t.Error("a new version of an environment that was given up is not tried")
		}
	})
}

func TestWarmerStopsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.OnWarm(func(ctx context.Context, _ compiletest.Warming) error {
			<-ctx.Done()
			return ctx.Err()
		})
		_, stop := w.warmer(t)
		synctest.Wait()
		stop()
		if n := len(w.warmed()); n != 1 {
			t.Errorf("it warmed %d times", n)
		}
	})
}

func TestNewWarmerRefuses(t *testing.T) {
	t.Parallel()
	if _, err := compile.NewWarmer(compile.WarmerParts{}, compile.WarmerConfig{}); fault.Of(err) != fault.Invalid {
		t.Errorf("%v, want Invalid", err)
	}
}
