package code_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
)

func TestNamed(t *testing.T) {
	t.Parallel()
	versions := []code.Version{ // as they are listed: deployed again, a version is there twice
		{ID: "aaaa11", Commit: "c0ffee"},
		{ID: "aaaa11", Commit: "c0ffee"},
		{ID: "aaaa22", Commit: "c0ffee"},
		{ID: "bbbb33"},
	}
	for name, want := range map[string]struct {
		id   code.VersionID
		kind fault.Kind
	}{
		"aaaa1":  {id: "aaaa11"},
		"bbbb33": {id: "bbbb33"},
		"aaaa":   {kind: fault.Invalid}, // the third is another one than the first two
		"c0ffee": {kind: fault.Invalid},
		"dddd":   {kind: fault.NotFound},
	} {
		id, err := code.Named("production", versions, name)
		if id != want.id || (err == nil) != (want.kind == 0) || err != nil && fault.Of(err) != want.kind {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
}
