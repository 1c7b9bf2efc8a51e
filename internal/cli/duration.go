package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/cli/print"
)

// A duration on the command line and in settings is numbers with units, as Go writes it, and besides h, m and s it takes
// d for 24 hours and w for 7 days: 90s, 1h30m, 7d, 2w. A day is 24 hours, whatever clocks do.

// parseDuration reads a duration.
func parseDuration(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%.40q is no duration such as 90s, 30m, 12h, 7d or 2w", text)
	rest, negative := strings.CutPrefix(text, "-")
	if rest == "0" {
		return 0, nil
	}
	total := 0.0
	for rest != "" {
		end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if end <= 0 {
			return 0, wrong
		}
		number, err := strconv.ParseFloat(rest[:end], 64)
		if err != nil {
			return 0, wrong
		}
		rest = rest[end:]
		unit := rest
		if next := strings.IndexAny(rest, "0123456789."); next >= 0 {
			unit = rest[:next]
		}
		span, known := spans[unit]
		if !known {
			return 0, wrong
		}
		total += number * float64(span)
		rest = rest[len(unit):]
	}
	if text == "" || text == "-" {
		return 0, wrong
	}
	if total >= math.MaxInt64 {
		return 0, fmt.Errorf("%.40q is longer than 292 years", text)
	}
	if negative {
		total = -total
	}
	return time.Duration(total), nil
}

// spans are the units of durations.
var spans = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
}

// durationFlag is a flag that takes a duration.
type durationFlag time.Duration

func (d *durationFlag) String() string { return print.Duration(time.Duration(*d)) }

func (d *durationFlag) Type() string { return "duration" }

func (d *durationFlag) Set(text string) error {
	parsed, err := parseDuration(text)
	*d = durationFlag(parsed)
	return err
}

// duration adds a flag that takes a duration.
func (f flagSet) duration(to *time.Duration, name string, usual time.Duration, help string) {
	*to = usual
	f.Var((*durationFlag)(to), name, help)
}
