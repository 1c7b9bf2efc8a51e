package scan

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPlainBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\x1f \"!#\\[]\x7f\x80\xa2\xdc\xff"))), 0, 40).Draw(t, "text"))
		for _, high := range []uint64{0, topBits} {
			want := 0
			for want < len(text) && text[want] >= ' ' && text[want] != '"' && text[want] != '\\' && (high == 0 || text[want] < 0x80) {
				want++
			}
			if got := plainBytes(text, high); got != want {
				t.Errorf("%q, %x: %d, want %d", text, high, got, want)
			}
		}
	})
}
