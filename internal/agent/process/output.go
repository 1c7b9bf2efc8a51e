package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/tutti-project/tutti/internal/agent/orders"
)

// budget is how many bytes the two streams of a program may still have.
type budget struct {
	mu   sync.Mutex
	left int64
	most int64
}

// take allows up to n bytes.
func (b *budget) take(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	allowed := min(int64(n), b.left)
	b.left -= allowed
	return int(allowed)
}

// limited is a file that takes everything, and keeps what the budget and the disk
// allow: a program never waits, or fails, because nobody keeps its output.
type limited struct {
	name   string
	file   *os.File
	budget *budget
	cut    bool
	failed error
}

func (w *watch) outputs(most int64) (stdout, stderr *limited, err error) {
	b := &budget{left: most, most: most}
	for _, stream := range []struct {
		name string
		to   **limited
	}{{orders.StdoutFile, &stdout}, {orders.StderrFile, &stderr}} {
		f, err := os.OpenFile(w.path(stream.name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640) //nolint:gosec // as the original's
		if err != nil {
			return nil, nil, err
		}
		*stream.to = &limited{name: stream.name, file: f, budget: b}
	}
	return stdout, stderr, nil
}

// Write implements io.Writer. It takes everything.
func (l *limited) Write(p []byte) (int, error) {
	if l.failed == nil && !l.cut {
		l.keep(p)
	}
	return len(p), nil
}

func (l *limited) keep(p []byte) {
	allowed := l.budget.take(len(p))
	l.cut = allowed < len(p)
	if allowed > 0 {
		_, l.failed = l.file.Write(p[:allowed])
	}
}

// add writes a line of our own, which no limit cuts. On a full disk there is a reserve for it.
func (l *limited) add(text string) {
	if _, err := l.file.WriteString(text); err != nil && l.failed == nil {
		l.failed = err
	}
}

// note says what is missing of the stream.
func (l *limited) note() string {
	switch {
	case l.failed != nil:
		return fmt.Sprintf("the rest of %s was not kept: %v", l.name, l.failed)
	case l.cut:
		return fmt.Sprintf("the rest of %s was cut off: at most %d bytes of output are kept", l.name, l.budget.most)
	default:
		return ""
	}
}

func (l *limited) close() { _ = l.file.Close() }

// newInput is standard input. A program without any gets an empty one; one that does
// not read it is no error.
func newInput(input []byte) io.Reader {
	if len(input) == 0 {
		return nil
	}
	return bytes.NewReader(input)
}
