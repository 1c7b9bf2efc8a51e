package fleet_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestCertnames(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"web-1.example.test": true, "a": true, "a_b": true, "0.1": true,
		"": false, "Web": false, ".a": false, "-a": false, "a..b": false, "../etc": false, "a/b": false, "a b": false, "a\x00": false, "é": false,
		"*.example.test": false, strings.Repeat("a", 256): false,
	} {
		_, err := fleet.ParseCertname(name)
		if (err == nil) != good || err != nil && fault.Of(err) != fault.Invalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestEnvironments(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"production": true, "Feature_1": true, "": false, "a-b": false, "a.b": false, "../x": false, strings.Repeat("a", 129): false,
	} {
		if _, err := fleet.ParseEnvironment(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestDigests(t *testing.T) {
	t.Parallel()
	d := fleet.DigestOf([]byte("x"))
	if got, err := fleet.ParseDigest(string(d)); got != d || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "abc", strings.ToUpper(string(d)), strings.Repeat("g", 64), string(d) + "0"} {
		if _, err := fleet.ParseDigest(bad); fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if d.Short() != string(d[:12]) || fleet.Digest("ab").Short() != "ab" {
		t.Error("short forms")
	}
}

func TestNobodyIsAnonymous(t *testing.T) {
	t.Parallel()
	if got := fleet.ActorFrom(t.Context()); got.Kind != fleet.Anonymous || len(got.Grants) > 0 {
		t.Errorf("got %+v", got)
	}
}

// FuzzCertname: what is accepted is a safe file name.
func FuzzCertname(f *testing.F) {
	f.Add("web-1.example.test")
	f.Add("../x")
	f.Fuzz(func(t *testing.T, s string) {
		name, err := fleet.ParseCertname(s)
		if err != nil {
			return
		}
		if path := filepath.Join("/d", string(name)); filepath.Dir(path) != "/d" || filepath.Base(path) != s {
			t.Errorf("%q leads to %s", s, path)
		}
	})
}
