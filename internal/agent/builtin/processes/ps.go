package processes

import (
	"slices"
	"strconv"
	"strings"
)

// psColumns are those that ps is asked for; the last one may have spaces in it.
func psColumns() []string {
	return []string{"-A", "-ww", "-o", "pid=", "-o", "ppid=", "-o", "uid=", "-o", "user=", "-o", "state=", "-o", "vsz=", "-o", "rss=", "-o", "args="}
}

// parsePS reads rows of psColumns. What has another form is left out.
func parsePS(text string) []Process {
	const columns = 7
	var all []Process
	for line := range strings.Lines(text) {
		var fields []string
		rest := strings.TrimSpace(line)
		for len(fields) < columns && rest != "" {
			field, more, _ := strings.Cut(rest, " ")
			fields, rest = append(fields, field), strings.TrimLeft(more, " ")
		}
		if len(fields) < columns {
			continue
		}
		numbers, ok := integers(fields[0], fields[1], fields[2], fields[5], fields[6])
		if !ok {
			continue
		}
		all = append(all, Process{
			PID: int(numbers[0]), Parent: int(numbers[1]), UID: int(numbers[2]), User: fields[3], State: fields[4],
			VirtualSize: numbers[3] << 10, Resident: numbers[4] << 10, CommandLine: rest,
		})
	}
	slices.SortFunc(all, func(a, b Process) int { return a.PID - b.PID })
	return all
}

func integers(texts ...string) ([]int64, bool) {
	var all []int64
	for _, text := range texts {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, false
		}
		all = append(all, n)
	}
	return all, true
}
