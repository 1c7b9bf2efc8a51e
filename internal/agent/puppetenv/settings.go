package puppetenv

import "strings"

// ParseSettings reads what `puppet agent --configprint` prints for several settings: a line "name = value" for each.
func ParseSettings(printed string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(printed) {
		if name, value, ok := strings.Cut(line, "="); ok {
			found[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return found
}
