package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Weekly is windows that come every week: one for each day, from a time of that day to a time of that day or a later one.
type Weekly struct {
	Days  [7]bool // by time.Weekday: when a window begins
	From  int     // minutes of the day, by the clock on the wall
	To    int     // minutes of the day Ahead days later; up to 24:00
	Ahead int
}

var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

const weeklyForm = "write it as 'mon-fri 18:00-06:00', 'sat,sun 00:00-24:00', 'daily 22:00-23:30' or 'fri 16:00-mon 06:00'"

// ParseWeekly reads DAYS HH:MM-HH:MM or DAY HH:MM-DAY HH:MM. A window whose end is not after its beginning ends on the next day.
func ParseWeekly(text string) (w Weekly, err error) {
	wrong := func(why string) (Weekly, error) {
		return Weekly{}, fault.New(fault.Invalid, "field weekly: %s in %.80q; %s", why, text, weeklyForm)
	}
	if len(text) > 200 {
		return wrong("too much is said")
	}
	days, times, ok := strings.Cut(strings.ToLower(strings.Join(strings.Fields(text), " ")), " ")
	if !ok {
		return wrong("the time is missing")
	}
	if !w.readDays(days) {
		return wrong("a day is not understood")
	}
	from, to, ok := strings.Cut(times, "-")
	if !ok {
		return wrong("the end is missing")
	}
	var fromOK, toOK bool
	if w.From, fromOK = minutes(strings.TrimSpace(from)); !fromOK || w.From == 24*60 {
		return wrong("the beginning is no time of a day")
	}
	to = strings.TrimSpace(to)
	if day, rest, named := strings.Cut(to, " "); named {
		first := slices.Index(w.Days[:], true)
		last := slices.Index(dayNames, day)
		if last < 0 {
			return wrong("the day at the end is not understood")
		}
		if slices.Index(w.Days[first+1:], true) >= 0 {
			return wrong("there are several days at the beginning, so that none may stand at the end")
		}
		w.To, toOK = minutes(rest)
		w.Ahead = (last - first + 7) % 7
		if w.Ahead == 0 && w.To <= w.From {
			w.Ahead = 7
		}
	} else {
		w.To, toOK = minutes(to)
		if w.To <= w.From {
			w.Ahead = 1
		}
	}
	if !toOK {
		return wrong("the end is no time of a day")
	}
	return w, nil
}

// readDays reads mon, mon-fri, sat,sun and daily.
func (w *Weekly) readDays(text string) bool {
	if text == "daily" {
		text = "mon-sun"
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, last := slices.Index(dayNames, from), slices.Index(dayNames, to)
		if !isRange {
			last = first
		}
		if first < 0 || last < 0 {
			return false
		}
		for day := first; ; day = (day + 1) % 7 {
			w.Days[day] = true
			if day == last {
				break
			}
		}
	}
	return true
}

// minutes reads HH:MM, up to 24:00.
func minutes(text string) (int, bool) {
	if len(text) != 5 || text[2] != ':' {
		return 0, false
	}
	for _, i := range []int{0, 1, 3, 4} {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	hour, minute := int(text[0]-'0')*10+int(text[1]-'0'), int(text[3]-'0')*10+int(text[4]-'0')
	all := hour*60 + minute
	return all, minute < 60 && all <= 24*60
}

// holds says whether one of the windows is open at a time, and when the last of those that are open ends.
func (w Weekly) holds(at time.Time, where *time.Location) (end time.Time, holds bool) {
	local := at.In(where)
	for back := -1; back <= w.Ahead+1; back++ { // a day more on both sides: clocks are moved
		day := time.Date(local.Year(), local.Month(), local.Day()-back, 0, 0, 0, 0, time.UTC)
		if !w.Days[day.Weekday()] {
			continue
		}
		from := onTheWall(day.Add(time.Duration(w.From)*time.Minute), where, false)
		to := onTheWall(day.AddDate(0, 0, w.Ahead).Add(time.Duration(w.To)*time.Minute), where, true)
		if !at.Before(from) && at.Before(to) && to.After(end) {
			end, holds = to, true
		}
	}
	return end, holds
}

// onTheWall is the instant at which the clock on the wall shows a time. Of a time that it shows twice it is the first or the
// last one; one that it skips is when it skips it.
func onTheWall(shown time.Time, where *time.Location, last bool) time.Time {
	offset := func(t time.Time) int {
		_, seconds := t.In(where).Zone()
		return seconds
	}
	// No offset is beyond a day, and clocks are not moved twice in two days.
	before, after := offset(shown.Add(-24*time.Hour)), offset(shown.Add(24*time.Hour))
	early := shown.Add(-time.Duration(max(before, after)) * time.Second)
	late := shown.Add(-time.Duration(min(before, after)) * time.Second)
	isEarly, isLate := offset(early) == max(before, after), offset(late) == min(before, after)
	switch {
	case isEarly && isLate && last, isLate && !isEarly:
		return late
	case isEarly:
		return early
	}
	skipped, _ := late.In(where).ZoneBounds()
	return skipped
}
