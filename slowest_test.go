package tutti_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The report of the slowest tests has the time that a story says it was told, not the one that it waited for its turn.
func TestSlowest(t *testing.T) {
	t.Parallel()
	events := filepath.Join(t.TempDir(), "test.json")
	const text = `{"Action":"run","Package":"x/e2e","Test":"TestStory"}
{"Action":"output","Package":"x/e2e","Test":"TestStory","Output":"    turn_test.go:41: told in 12.5 s, besides the wait for its turn\n"}
{"Action":"pass","Package":"x/e2e","Test":"TestStory","Elapsed":660.1}
{"Action":"output","Package":"x/e2e","Test":"TestStories/one","Output":"told in 3.0 s, besides the wait for its turn\n"}
{"Action":"fail","Package":"x/e2e","Test":"TestStories/one","Elapsed":700}
{"Action":"pass","Package":"x/e2e","Test":"TestStories","Elapsed":700}
{"Action":"pass","Package":"x/a","Test":"TestPlain","Elapsed":4.2}
{"Action":"pass","Package":"x/a","Test":"TestQuick","Elapsed":0}
{"Action":"pass","Package":"x/e2e","Elapsed":900}
`
	if err := os.WriteFile(events, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := command(t, ".", "tools/slowest", events, "3")
	if err != nil {
		t.Fatal(err)
	}
	want := "    12.5 s  x/e2e TestStory\n     4.2 s  x/a TestPlain\n     3.0 s  x/e2e TestStories/one\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the slowest (-want +got):\n%s", diff)
	}
}
