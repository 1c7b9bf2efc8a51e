package print

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// A cell of a table is a text, a number, a bool, a list of texts, a time (*time.Time when it may be missing), one of the
// kinds below, or nil. People see how long a time is past and "1.2 MB"; programs get RFC 3339 and numbers.

// Size is a number of bytes.
type Size int64

// Growth is by how many bytes something grows.
type Growth int64

// Date is a time of which people see the day only.
type Date time.Time

// Took is how long something took. Programs get seconds.
type Took time.Duration

// ID is a digest or another long name by which a thing is found. People see its beginning, which is enough to name it by.
type ID string

// State is the word for how something stands. It has the colour of its first word.
type State string

// forPeople is a cell as people see it. Exact: times as they are, and nothing is shortened.
func forPeople(cell any, now time.Time, exact bool) string {
	switch v := cell.(type) {
	case time.Time:
		if exact && !v.IsZero() {
			return rfc3339(v)
		}
		return Ago(v, now)
	case *time.Time:
		if v == nil {
			return "never"
		}
		return forPeople(*v, now, exact)
	case Date:
		if exact {
			return forPrograms(v)
		}
		return time.Time(v).Format(time.DateOnly)
	case Size:
		return Bytes(int64(v))
	case Growth:
		if v < 0 {
			return "-" + Bytes(-int64(v))
		}
		return "+" + Bytes(int64(v))
	case Took:
		if v == 0 {
			return ""
		}
		return Duration(time.Duration(v))
	case ID:
		if len(v) > shortID && !exact {
			return string(v[:shortID])
		}
		return string(v)
	}
	return forPrograms(cell)
}

// shortID is how much of an ID people see.
const shortID = 12

// forPrograms is a cell as CSV has it: a missing value is empty.
func forPrograms(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case string:
		return v
	case ID:
		return string(v)
	case State:
		return string(v)
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return rfc3339(v)
	case *time.Time:
		if v == nil {
			return ""
		}
		return forPrograms(*v)
	case Date:
		return rfc3339(time.Time(v))
	case Size:
		return strconv.FormatInt(int64(v), 10)
	case Growth:
		return strconv.FormatInt(int64(v), 10)
	case Took:
		if v == 0 {
			return ""
		}
		return strconv.FormatFloat(time.Duration(v).Seconds(), 'f', -1, 64)
	case *int:
		if v == nil {
			return ""
		}
		return strconv.Itoa(*v)
	case []string:
		return strings.Join(v, " ")
	}
	return fmt.Sprint(cell)
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// compareCells orders two cells of one column: by what they are, not by how they look. A missing value comes first.
func compareCells(a, b any) int {
	x, y := orderOf(a), orderOf(b)
	return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.number, y.number), cmp.Compare(x.text, y.text))
}

// order is where a cell belongs: missing values, then numbers and times, then texts.
type order struct {
	class  int
	number float64
	text   string
}

func orderOf(cell any) order {
	number := func(n float64) order { return order{class: 1, number: n} }
	switch v := cell.(type) {
	case time.Time:
		if v.IsZero() {
			return order{}
		}
		return number(float64(v.UnixNano()))
	case *time.Time:
		if v == nil {
			return order{}
		}
		return orderOf(*v)
	case *int:
		if v == nil {
			return order{}
		}
		return number(float64(*v))
	case int:
		return number(float64(v))
	case int64:
		return number(float64(v))
	case float64:
		return number(v)
	case Date:
		return number(float64(time.Time(v).UnixNano()))
	case Size:
		return number(float64(v))
	case Growth:
		return number(float64(v))
	case Took:
		return number(float64(v))
	case json.Number:
		if n, err := v.Float64(); err == nil {
			return number(n)
		}
	}
	text := forPrograms(cell)
	if text == "" {
		return order{}
	}
	return order{class: 2, text: text}
}

// Duration is a time span as people write it, in tables as in sentences.
func Duration(d time.Duration) string { return fault.Duration(d) }
