package puppet

import (
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestReadForm(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("%257B%2522a%2522%253A1%257D", 5000)
	tests := []struct {
		name   string
		in     string
		fields map[string]string
		facts  string
	}{
		{"empty", "", map[string]string{}, ""},
		{"one", "a=b", map[string]string{"a": "b"}, ""},
		{"first counts", "a=1&a=2", map[string]string{"a": "1"}, ""},
		{"no value", "a&b=", map[string]string{"a": "", "b": ""}, ""},
		{"empty pairs", "&&a=b&&", map[string]string{"a": "b"}, ""},
		{"value with equals", "a=b=c", map[string]string{"a": "b=c"}, ""},
		{"once", "a=%2541+b%20c", map[string]string{"a": "%41 b c"}, ""},
		{"facts twice over", "x=1&facts=%257B%2522a%2522%253A%2522%252B%2525%2522%257D&y=2", map[string]string{"x": "1", "y": "2"}, `{"a":"+%"}`},
		{"plain facts", "facts={}", map[string]string{}, "{}"},
		{"escaped name", "f%61cts=%257B", map[string]string{}, "{"},
		{"long", "facts=" + long + "&z=1", map[string]string{"z": "1"}, strings.Repeat(`{"a":1}`, 5000)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, slow := range []bool{false, true} {
				in := any(strings.NewReader(test.in)).(interface{ Read([]byte) (int, error) })
				if slow {
					in = iotest.OneByteReader(in)
				}
				form, err := readForm(in, int64(len(test.in)), 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.fields, form.fields); diff != "" {
					t.Errorf("fields (-want +got):\n%s", diff)
				}
				if string(form.facts) != test.facts {
					t.Errorf("facts %.100q, want %.100q", form.facts, test.facts)
				}
			}
		})
	}
}

// FuzzReadForm compares with the standard library: what it reads, we read the
// same; and however a form arrives, it is read the same.
func FuzzReadForm(f *testing.F) {
	for _, seed := range []string{
		"", "a=b", "facts=%257B%257D&a=1", "facts=%25", "facts=%2", "=&=&", "a=%zz", "a;b=c", "facts&facts", "f%61cts=x",
		"facts_format=application%2Fjson&facts=%257B%2522name%2522%253A%2522x%2522%257D&environment=production",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		form, err := readForm(strings.NewReader(in), int64(len(in)), 1000)
		again, errAgain := readForm(iotest.OneByteReader(strings.NewReader(in)), 0, 1000)
		if (err == nil) != (errAgain == nil) {
			t.Fatalf("at once: %v; byte by byte: %v", err, errAgain)
		}
		if err != nil {
			return
		}
		if string(form.facts) != string(again.facts) || !cmp.Equal(form.fields, again.fields) {
			t.Fatal("read differently byte by byte")
		}
		values, err := url.ParseQuery(in)
		if err != nil {
			return // semicolons: a matter of taste
		}
		for name, value := range form.fields {
			if values.Get(name) != value {
				t.Errorf("field %q is %q, want %q", name, value, values.Get(name))
			}
		}
		if facts, err := url.QueryUnescape(values.Get("facts")); err == nil && form.hasFacts && facts != string(form.facts) {
			t.Errorf("facts %q, want %q", form.facts, facts)
		}
	})
}

func BenchmarkReadForm(b *testing.B) {
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	facts := `{"name":"x","values":{` + strings.Repeat(`"networking":{"ip":"10.0.0.1"},`, 450) + `"a":1}}`
	body := "facts_format=application%2Fjson&facts=" + escape(escape(facts)) + "&environment=production"
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readForm(strings.NewReader(body), int64(len(body)), 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}
