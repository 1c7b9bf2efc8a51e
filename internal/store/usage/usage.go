// Package usage says what a server's data takes, how fast each part of it grows, and
// until when the disk lasts.
//
// Sizes are measured when somebody asks. One measurement of each day is kept, for 90
// days; growth is what lies between the oldest of the last 30 days and now.
package usage

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Sample is what a part took at some time.
type Sample struct {
	At    time.Time
	Area  string
	Bytes int64
}

// Store keeps samples. Methods may be called concurrently; each is one transaction.
type Store interface {
	// SaveUsage keeps samples that are of one time, unless there are some of that day (UTC).
	SaveUsage(ctx context.Context, samples []Sample) error
	// UsageSamples lists samples from a time on, the oldest first, those of one time by area.
	UsageSamples(ctx context.Context, since time.Time) ([]Sample, error)
	// PruneUsage forgets samples from before a time, and counts them.
	PruneUsage(ctx context.Context, before time.Time) (int, error)
}

// Keep is how long samples are kept; Span is how far back growth looks.
const (
	Keep = 90 * 24 * time.Hour
	Span = 30 * 24 * time.Hour
)

// leastSpan is the time between two samples from which they tell how fast something grows.
const leastSpan = 12 * time.Hour

// Area is one part and what is known of it.
type Area struct {
	Name   string
	Bytes  int64
	Growth int64 // bytes a day; it may shrink
	Since  time.Time
	// Elsewhere marks what is not on the data directory's disk.
	Elsewhere bool
}

// Known tells whether Growth is: there was a sample long enough ago.
func (a Area) Known() bool { return !a.Since.IsZero() }

// Grown joins what is now with samples of before. The largest comes first.
func Grown(now time.Time, sizes map[string]int64, before []Sample) []Area {
	var oldest time.Time
	then := map[string]int64{}
	for _, s := range before {
		if s.At.Before(now.Add(-Span)) || now.Sub(s.At) < leastSpan {
			continue
		}
		if oldest.IsZero() || s.At.Before(oldest) {
			oldest = s.At
			clear(then)
		}
		if s.At.Equal(oldest) {
			then[s.Area] = s.Bytes
		}
	}
	areas := make([]Area, 0, len(sizes))
	for name, bytes := range sizes {
		a := Area{Name: name, Bytes: bytes, Since: oldest}
		if a.Known() {
			a.Growth = aDay(bytes-then[name], now.Sub(oldest))
		}
		areas = append(areas, a)
	}
	slices.SortFunc(areas, func(a, b Area) int {
		if a.Bytes != b.Bytes {
			return int(max(min(b.Bytes-a.Bytes, 1), -1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return areas
}

func aDay(bytes int64, span time.Duration) int64 {
	return int64(float64(bytes) * float64(24*time.Hour) / float64(span))
}

// lastsAtMost is as far as a forecast goes.
const lastsAtMost = 100 * 365 * 24 * time.Hour

// FullAt is when free bytes of the data directory's disk are used up; the zero time when that is not known, nothing grows, or it is far away.
func FullAt(now time.Time, free int64, areas []Area) time.Time {
	var growth int64
	for _, a := range areas {
		if a.Elsewhere {
			continue
		}
		if !a.Known() {
			return time.Time{}
		}
		growth += a.Growth
	}
	if growth <= 0 {
		return time.Time{}
	}
	days := float64(max(free, 0)) / float64(growth)
	if days*24 > lastsAtMost.Hours() {
		return time.Time{}
	}
	return now.Add(time.Duration(days * float64(24*time.Hour)))
}
