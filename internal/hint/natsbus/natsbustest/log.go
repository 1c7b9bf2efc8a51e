package natsbustest

import (
	"log/slog"
	"testing"
)

// logger writes into the test's log while the test runs.
func logger(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
