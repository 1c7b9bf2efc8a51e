package inventory

import "strconv"

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
	for s := (scanner{src: path}); s.pos < len(path); {
		switch path[s.pos] {
		case '.':
			s.pos++
		case '[':
			end := s.pos
			for end < len(path) && path[end] != ']' {
				end++
			}
			n, _ := strconv.ParseInt(path[s.pos+1:end], 10, 64) // an index is written by appendIndex
			steps = append(steps, n)
			s.pos = end + 1
		case '"':
			key, err := s.str()
			if err != nil {
				return steps
			}
			steps = append(steps, key)
		default:
			end := s.pos
			for end < len(path) && path[end] != '.' && path[end] != '[' {
				end++
			}
			steps = append(steps, path[s.pos:end])
			s.pos = end
		}
	}
	return steps
}
