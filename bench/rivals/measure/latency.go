package measure

import (
	"math"
	"slices"
	"time"
)

// Latency sums up how long requests took.
type Latency struct {
	Count                    int
	P50, P90, P99, Max, Mean time.Duration
}

// Summarize sorts a copy of the samples and reads the percentiles from it.
func Summarize(samples []time.Duration) Latency {
	if len(samples) == 0 {
		return Latency{}
	}
	sorted := slices.Clone(samples)
	slices.Sort(sorted)
	var sum time.Duration
	for _, d := range sorted {
		sum += d
	}
	return Latency{
		Count: len(sorted),
		P50:   percentile(sorted, 50), P90: percentile(sorted, 90), P99: percentile(sorted, 99),
		Max: sorted[len(sorted)-1], Mean: sum / time.Duration(len(sorted)),
	}
}

// percentile is the nearest rank: the smallest sample that at least p percent
// of the samples do not exceed. It never invents a value between two samples.
func percentile(sorted []time.Duration, p float64) time.Duration {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
