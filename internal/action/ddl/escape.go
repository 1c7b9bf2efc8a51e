package ddl

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// simple are the escapes of one letter.
var simple = map[byte]string{
	'n': "\n", 't': "\t", 'r': "\r", 's': " ", 'e': "\x1b", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00", '\n': "",
}

// escaped is a text between double quotes as Ruby reads it: whole, or in parts if it has expressions.
func escaped(body string, line int) (whole string, parts []piece, err error) {
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		switch {
		case strings.HasPrefix(body[i:], "#{"):
			end := strings.IndexByte(body[i:], '}')
			if end < 0 {
				return "", nil, at(line, "#{ without } in a text")
			}
			parts = append(parts, piece{text: b.String()}, piece{text: strings.TrimSpace(body[i+2 : i+end]), expression: true})
			b.Reset()
			i += end
		case body[i] == '\\' && i+1 < len(body):
			n, made := escape(body[i+1:])
			if n == 0 {
				return "", nil, at(line, "%.4q is no escape that is known here", body[i:])
			}
			b.WriteString(made)
			i += n
		default:
			b.WriteByte(body[i])
		}
	}
	if parts == nil {
		return b.String(), nil, nil
	}
	return "", append(parts, piece{text: b.String()}), nil
}

// escape reads what follows a backslash: how long that is, and what it means; 0: nothing.
func escape(rest string) (n int, made string) {
	if made, known := simple[rest[0]]; known {
		return 1, made
	}
	var digits string
	var length int
	switch {
	case strings.HasPrefix(rest, "u{"):
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return 0, ""
		}
		digits, length = rest[2:end], end+1
	case rest[0] == 'u' && len(rest) >= 5:
		digits, length = rest[1:5], 5
	case rest[0] == 'x' && len(rest) >= 3:
		digits, length = rest[1:3], 3
	case rest[0] == 'u' || rest[0] == 'x' || rest[0] >= '1' && rest[0] <= '7':
		return 0, ""
	default:
		_, size := utf8.DecodeRuneInString(rest)
		return size, rest[:size]
	}
	code, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !utf8.ValidRune(rune(code)) || rest[0] == 'x' && code >= utf8.RuneSelf { //nolint:gosec // 32 bits
		return 0, ""
	}
	return length, string(rune(code)) //nolint:gosec // 32 bits
}
