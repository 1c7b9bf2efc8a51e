package facts

import (
	"strconv"

	"github.com/tutti-project/tutti/internal/facts/scan"
)

// PathText writes keys (string) and positions (int64) as the path of a leaf.
func PathText(steps ...any) string {
	var path []byte
	for _, step := range steps {
		switch s := step.(type) {
		case string:
			path = appendKey(path, s)
		case int64:
			path = appendIndex(path, int(s))
		}
	}
	return string(path)
}

// PathSteps is the inverse of PathText.
func PathSteps(path string) []any {
	var steps []any
	for s := (scan.Scanner{Src: path}); s.Pos < len(path); {
		switch path[s.Pos] {
		case '.':
			s.Pos++
		case '[':
			end := s.Pos
			for end < len(path) && path[end] != ']' {
				end++
			}
			n, _ := strconv.ParseInt(path[s.Pos+1:end], 10, 64) // an index is written by appendIndex
			steps = append(steps, n)
			s.Pos = end + 1
		case '"':
			key, err := s.String()
			if err != nil {
				return steps
			}
			steps = append(steps, key)
		default:
			end := s.Pos
			for end < len(path) && path[end] != '.' && path[end] != '[' {
				end++
			}
			steps = append(steps, path[s.Pos:end])
			s.Pos = end
		}
	}
	return steps
}
