package cli

import (
	"testing"

	"github.com/tutti-project/tutti/api"
)

// What matters of two versions: another line, or one that is no release. Patches of one line speak with each other.
func TestVersionsThatMatter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		here, there api.Build
		matters     bool
	}{
		"the same":            {api.Build{Version: "0.1.0", Commit: "a"}, api.Build{Version: "0.1.0", Commit: "a"}, false},
		"a patch":             {api.Build{Version: "0.1.0"}, api.Build{Version: "0.1.3"}, false},
		"another line":        {api.Build{Version: "0.1.0"}, api.Build{Version: "0.2.0"}, true},
		"a later commit":      {api.Build{Version: "0.1.0", Commit: "a"}, api.Build{Version: "0.1.0+5.gb", Commit: "b"}, true},
		"two of no release":   {api.Build{Version: "devel", Commit: "a"}, api.Build{Version: "devel", Commit: "b"}, true},
		"one build of no one": {api.Build{Version: "devel", Commit: "a"}, api.Build{Version: "devel", Commit: "a"}, false},
	} {
		if got := mismatch(c.here, c.there); (got != "") != c.matters {
			t.Errorf("%s: %q", name, got)
		}
	}
}
