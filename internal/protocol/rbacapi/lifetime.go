package rbacapi

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
)

// units are what a lifetime may end with; without one it is seconds.
var units = map[byte]time.Duration{'y': 365 * 24 * time.Hour, 'd': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}

// lifetime reads how long a token is asked to be good: "5h", "30" or 30 seconds; "0" is as long as the server gives, and nothing is 0, the server's
// default.
func lifetime(asked pejson.Text, longest time.Duration) (time.Duration, error) {
	text := strings.TrimSpace(string(asked))
	if text == "" {
		return 0, nil
	}
	unit, digits := time.Second, text
	if u, ok := units[text[len(text)-1]]; ok {
		unit, digits = u, text[:len(text)-1]
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || digits[0] == '+' {
		return 0,
			fault.New(fault.Invalid, "lifetime: %.40q is no time; it is a number with y, d, h, m or s, such as 5h, a number of seconds, or 0 for the longest", text)
	}
	if n == 0 {
		return longest, nil
	}
	if n > math.MaxInt64/int64(unit) {
		n, unit = 1, math.MaxInt64 // longer than any server gives; it says what it gives
	}
	return time.Duration(n) * unit, nil
}
