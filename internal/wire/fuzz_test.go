package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/wire"
)

func FuzzV1(f *testing.F) {
	f.Add(frame("\x01", envelope("", ""), "\x02", `{"a":1}`, "\x03", "{}"))
	f.Add(frame("\x01", envelope("http://puppetlabs.com/x", wire.ErrorMessage), "\x02", `{"description":"no","id":"1-1-1-1-1"}`))
	fuzz(f, wire.V1)
}

func FuzzV2(f *testing.F) {
	f.Add([]byte(`{"id":"1-1-1-1-1","message_type":"x","target":"pcp://a/b","sender":"pcp://c/d","in_reply_to":"2-2-2-2-2","data":null}`))
	fuzz(f, wire.V2)
}

// fuzz: what is accepted can be passed on in both versions, and then
// stays as it is.
func fuzz(f *testing.F, version wire.Version) {
	f.Helper()
	for _, m := range examples {
		seed, err := version.Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := version.Decode(payload)
		if err != nil {
			return
		}
		m.Others = nil
		for _, to := range []wire.Version{wire.V1, wire.V2} {
			out, err := to.Append(nil, m)
			if err != nil {
				t.Fatalf("version %d: %+v cannot be written: %v", to, m, err)
			}
			once, err := to.Decode(out)
			if err != nil {
				t.Fatalf("version %d: %q cannot be read: %v", to, out, err)
			}
			again, err := to.Append(nil, once)
			if err != nil {
				t.Fatal(err)
			}
			twice, err := to.Decode(again)
			if diff := cmp.Diff(once, twice); diff != "" || err != nil {
				t.Fatalf("version %d changes what it wrote itself: %v\n%s", to, err, diff)
			}
		}
	})
}
