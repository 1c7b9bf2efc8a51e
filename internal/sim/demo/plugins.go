package demo

import (
	"bytes"
	"fmt"
	"io"

	"github.com/tutti-project/tutti/internal/fault"
)

// plugins passes an agent's output on, except the line for each plugin that it
// fetches: there are hundreds, and they are counted instead.
type plugins struct {
	out   io.Writer
	line  []byte
	count int
}

// maxLine is how long a line may be before it is passed on in parts.
const maxLine = 64 << 10

func (p *plugins) Write(text []byte) (int, error) {
	for _, b := range text {
		if p.line = append(p.line, b); b == '\n' || len(p.line) == maxLine {
			p.flush()
		}
	}
	return len(text), nil
}

func (p *plugins) flush() {
	if bytes.Contains(p.line, []byte("/vardir/lib/")) && bytes.Contains(p.line, []byte("]/ensure: ")) {
		p.count++
	} else {
		_, _ = p.out.Write(p.line)
	}
	p.line = p.line[:0]
}

// end passes on the rest and says what was left out.
func (p *plugins) end() {
	if p.flush(); p.count > 0 {
		_, _ = fmt.Fprintf(p.out, "(and about plugins that were fetched: %s)\n", fault.Count(p.count, "line"))
	}
}
