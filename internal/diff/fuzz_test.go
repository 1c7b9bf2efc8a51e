package diff

import (
	"context"
	"testing"
)

// FuzzCompare reads whatever comes as two catalogs: a broken one is an error, a
// catalog does not differ from itself, and everything can be shown.
func FuzzCompare(f *testing.F) {
	small := `{"exported":[],"catalog":{"name":"n","environment":"e","classes":["a"],"tags":["t"],"edges":[{"source":"A[b]","target":{"type":"C","title":"d"}}],
		"resources":[{"type":"File","title":"/x","tags":["x"],"parameters":{"content":"a\nb","show_diff":false,"o":{"a":[1,{"b":null}]}},"sensitive_parameters":["o"]}],
		"metadata":{"/x":{"type":"file","checksum":{"value":"{sha256}00"},"mode":420}},"recursive_metadata":{"/x":{"s":[{"relative_path":"."}]}}}}`
	f.Add([]byte(small), []byte(catalogOf(`{"type":"File","title":"/x","parameters":{"o":{"a":[1,2,{"b":1}]},"content":{"__ptype":"Sensitive","__pvalue":"x"}}}`)))
	f.Add([]byte(`{"resources":null}`), []byte(`{"resources":[{"type":"A","title":"b","parameters":null}]}`))
	f.Add([]byte(`{"resources":[{"type":"A","title":"\ud800","parameters":{"a":1e999,"a":[[]]}}],"edges":[{}]}`),
		[]byte("{\"resources\":[ {\"type\":\"A\",\"title\":\"\xff\"} ]}"))
	f.Fuzz(func(t *testing.T, old, fresh []byte) {
		a, err := Parse(old)
		if err != nil {
			return
		}
		b, err := ParseSent(fresh)
		if err != nil {
			return
		}
		if d, err := Compare(a, a); err == nil && !d.Empty() {
			t.Errorf("it differs from itself: %v", listed(d))
		}
		d, err := Compare(a, b)
		if err != nil {
			return
		}
		NewShower(nil, DefaultLimits()).Show(context.Background(), d)
		everything(t, d)
	})
}
