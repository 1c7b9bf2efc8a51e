package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
)

// repeated is where something is printed again and again; enough is closed when it was printed twice.
type repeated struct {
	again string
	mu    sync.Mutex
	text  bytes.Buffer
	once  sync.Once
	stop  context.CancelFunc
}

func (w *repeated) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(p)
	if strings.Count(w.text.String(), w.again) >= 2 {
		w.once.Do(w.stop)
	}
	return n, err
}

func (w *repeated) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// contextUntil ends when what w waits for was printed twice.
func contextUntil(t *testing.T, w *repeated) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = cancel
	return ctx, cancel
}
