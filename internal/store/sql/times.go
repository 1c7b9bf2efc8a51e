package sql

import (
	"fmt"
	"time"
)

// micros is how a time is stored.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// instant is the inverse of micros.
func instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// at scans a stored time into t.
func at(t *time.Time) timeScanner { return timeScanner{t} }

type timeScanner struct{ to *time.Time }

func (s timeScanner) Scan(v any) error {
	us, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", v)
	}
	*s.to = instant(us)
	return nil
}

// bit is how a flag is stored.
func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
