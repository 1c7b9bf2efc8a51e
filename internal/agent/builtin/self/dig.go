package self

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// dig finds a value by its path: names of an object's fields, and numbers of a list's elements. Names of facts may have dots themselves:
// the shortest name comes first that leads to a value.
func dig(value json.RawMessage, path []string) (json.RawMessage, bool) {
	value = bytes.TrimSpace(value)
	if len(path) == 0 {
		return value, len(value) > 0
	}
	if bytes.HasPrefix(value, []byte("[")) {
		var list []json.RawMessage
		i, err := strconv.Atoi(path[0])
		if err != nil || json.Unmarshal(value, &list) != nil || i < 0 || i >= len(list) {
			return nil, false
		}
		return dig(list[i], path[1:])
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil {
		return nil, false
	}
	for i := range path {
		if below, there := object[strings.Join(path[:i+1], ".")]; there {
			if found, ok := dig(below, path[i+1:]); ok {
				return found, true
			}
		}
	}
	return nil, false
}
