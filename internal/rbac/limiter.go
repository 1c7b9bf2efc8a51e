package rbac

import (
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// limiter bounds how often something may be tried under a key: so many at once,
// and then one for each interval.
type limiter struct {
	burst    int
	interval time.Duration

	mu   sync.Mutex
	full map[string]time.Time // when a key will have its whole burst again
}

// maxKeys is when forgotten keys are looked for.
const maxKeys = 10_000

func newLimiter(burst int, interval time.Duration) *limiter {
	return &limiter{burst: burst, interval: interval, full: map[string]time.Time{}}
}

// take counts one try. When there were too many it says when to come back. So many
// keys that none can be remembered are refused alike: who floods waits.
func (l *limiter) take(key string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	full, known := l.full[key]
	if !known && len(l.full) >= maxKeys {
		for k, at := range l.full {
			if !at.After(now) {
				delete(l.full, k)
			}
		}
		if len(l.full) >= maxKeys {
			return tooMany(l.interval)
		}
	}
	if full.Before(now) {
		full = now
	}
	if wait := full.Add(l.interval).Sub(now) - time.Duration(l.burst)*l.interval; wait > 0 {
		return tooMany(wait)
	}
	l.full[key] = full.Add(l.interval)
	return nil
}

func tooMany(wait time.Duration) error {
	return fault.Later(wait, "too many logins were tried; come back in %s", wait.Round(time.Second))
}
