// Package rate bounds how often something may be done under a key, such as a name
// or an address: so many times at once, and then once for each interval.
//
// The counts are in memory and end with the process. A Limiter is safe for concurrent use; it takes about 100
// bytes for each key whose burst is not fully available again.
package rate

import (
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Limiter bounds how often something may be tried under a key.
type Limiter struct {
	burst    int
	interval time.Duration
	most     int // keys

	mu   sync.Mutex
	full map[string]time.Time // when a key will have its whole burst again
}

// New returns a Limiter that remembers so many keys at most.
func New(burst int, interval time.Duration, keys int) *Limiter {
	return &Limiter{burst: burst, interval: interval, most: keys, full: map[string]time.Time{}}
}

// Take counts one try. When there were too many it counts nothing and says how long to
// wait. So many keys that none can be remembered are refused alike: who floods waits.
func (l *Limiter) Take(key string, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full, known := l.full[key]
	if !known && len(l.full) >= l.most {
		for k, at := range l.full {
			if !at.After(now) {
				delete(l.full, k)
			}
		}
		if len(l.full) >= l.most {
			return l.interval
		}
	}
	if full.Before(now) {
		full = now
	}
	if wait := full.Add(l.interval).Sub(now) - time.Duration(l.burst)*l.interval; wait > 0 {
		return wait
	}
	l.full[key] = full.Add(l.interval)
	return 0
}

// certificates are more than any fleet has: keys are certnames, and those are signed.
const certificates = 1_000_000

// Rule is a limit for each certificate, in words. A nil Rule limits nothing.
type Rule struct {
	limiter *Limiter
	what    string
}

// Per returns the rule that one certificate does something so many times in a span. What
// says it: "%s sends facts more than 60 times a minute (setting facts_per_minute)" has the
// certificate's name in the place of %s. No times mean no limit.
func Per(span time.Duration, times int, what string) *Rule {
	if times <= 0 {
		return nil
	}
	return &Rule{limiter: New(times, span/time.Duration(times), certificates), what: what}
}

// Allow counts one time. Too many are an Unavailable fault that says when to come back,
// and that the caller is the reason.
func (r *Rule) Allow(certificate string, now time.Time) error {
	if r == nil {
		return nil
	}
	if wait := r.limiter.Take(certificate, now); wait > 0 {
		return fault.TooOften(wait, r.what+"; come back in %s", certificate, max(wait.Round(time.Second), time.Second))
	}
	return nil
}
