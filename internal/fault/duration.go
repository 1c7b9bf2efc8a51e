package fault

import (
	"fmt"
	"strings"
	"time"
)

// Duration is a time span as people write it: 350ms, 4.2s, 3m5s, 2h30m, 7d, 2w.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d == 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= 2*7*day && d%(7*day) == 0:
		return fmt.Sprintf("%dw", d/(7*day))
	case d >= 2*day:
		text := fmt.Sprintf("%dd", d/day)
		if hours := d % day / time.Hour; hours > 0 {
			text += fmt.Sprintf("%dh", hours)
		}
		return text
	}
	text := d.Round(time.Second).String()
	for _, nothing := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, nothing) {
			text = strings.TrimSuffix(text, nothing[1:])
		}
	}
	return text
}

// putInWords makes of time spans among args what people write: no sentence says 1m0s. It changes args in place, so that vet
// still knows the functions that call it as those of fmt.
func putInWords(args []any) {
	for i, arg := range args {
		if d, ok := arg.(time.Duration); ok {
			args[i] = Duration(d)
		}
	}
}
