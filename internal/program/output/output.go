// Package output keeps the beginning of what a program prints, and makes text of it.
package output

import (
	"bytes"
	"strings"
)

// Beginning keeps the first Most bytes that are written to it and swallows the rest, so that a program never waits, or fails, because nobody keeps
// what it prints. It embeds no buffer, whose ReadFrom would pass by the bound.
type Beginning struct {
	Most int
	Full func() // called when there is more; nil: nobody wants to know

	kept bytes.Buffer
	cut  bool
}

// Write implements io.Writer. It takes everything.
func (b *Beginning) Write(p []byte) (int, error) {
	fits := min(len(p), b.Most-b.kept.Len())
	b.kept.Write(p[:fits])
	if fits < len(p) {
		b.cut = true
		if b.Full != nil {
			b.Full()
		}
	}
	return len(p), nil
}

// Bytes are what is kept.
func (b *Beginning) Bytes() []byte { return b.kept.Bytes() }

// String is what is kept, as it is.
func (b *Beginning) String() string { return b.kept.String() }

// Text is what is kept, as text that JSON and people can have.
func (b *Beginning) Text() string {
	return strings.ToValidUTF8(strings.ReplaceAll(b.String(), "\x00", "\uFFFD"), "\uFFFD")
}

// Cut says whether there was more.
func (b *Beginning) Cut() bool { return b.cut }
