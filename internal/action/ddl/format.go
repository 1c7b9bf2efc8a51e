package ddl

import (
	"regexp"
	"strings"

	"github.com/tutti-project/tutti/internal/action"
)

// place is one of printf's places.
var place = regexp.MustCompile(`%([-+0 #]*)(\d*)(\.\d+)?([a-zA-Z%]?)`)

// formatOf is a format of Ruby's printf as Go's; not ok: there is none. A summary has a value and its number, average and sum have one number.
func formatOf(function action.Function, format string) (made string, ok bool) {
	ok = true
	places := 0
	made = place.ReplaceAllStringFunc(format, func(one string) string {
		parts := place.FindStringSubmatch(one)
		flags, width, precision, verb := parts[1], parts[2], parts[3], parts[4]
		if verb == "%" && one == "%%" {
			return one
		}
		places++
		text := function == action.Summary && places == 1
		counted := function == action.Summary && places == 2
		switch {
		case len(width) > 3 || len(precision) > 4:
			ok = false
		case text && verb == "s", counted && strings.Contains("sdiu", verb) && verb != "":
			verb = "v"
		case text || counted || verb == "":
			ok = false
		case strings.Contains("diu", verb):
			precision, verb = ".0", "f"
		case verb == "s":
			verb = "v"
		case !strings.Contains("feEgG", verb):
			ok = false
		}
		return "%" + flags + width + precision + verb
	})
	want := 1
	if function == action.Summary {
		want = 2
	}
	if !ok || places != want || function == action.BooleanSummary || function == action.Distribution {
		return "", false
	}
	return made, true
}
