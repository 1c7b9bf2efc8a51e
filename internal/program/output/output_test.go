package output_test

import (
	"io"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/program/output"
)

func TestBeginning(t *testing.T) {
	t.Parallel()
	full := 0
	b := output.Beginning{Most: 5, Full: func() { full++ }}
	for _, step := range []struct {
		text, kept string
		cut        bool
		full       int
	}{
		{"ab", "ab", false, 0}, {"c\x00\xff", "abc\x00\xff", false, 0}, {"", "abc\x00\xff", false, 0}, {"x", "abc\x00\xff", true, 1}, {"yz", "abc\x00\xff", true, 2},
	} {
		if n, err := b.Write([]byte(step.text)); n != len(step.text) || err != nil {
			t.Errorf("%q: %d, %v", step.text, n, err)
		}
		if b.String() != step.kept || string(b.Bytes()) != step.kept || b.Cut() != step.cut || full != step.full {
			t.Errorf("%q: %q, cut %v, full %d", step.text, b.String(), b.Cut(), full)
		}
	}
	if b.Text() != "abc\uFFFD\uFFFD" {
		t.Errorf("text %q", b.Text())
	}
	if n, err := io.Copy(&b, strings.NewReader(strings.Repeat("x", 1000))); n != 1000 || err != nil || len(b.Bytes()) != 5 {
		t.Errorf("copied %d, %v, kept %d", n, err, len(b.Bytes()))
	}
}
