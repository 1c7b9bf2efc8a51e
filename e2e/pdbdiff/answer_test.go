package pdbdiff_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// answer is what a server said.
type answer struct {
	status int
	kind   string // Content-Type
	total  string // X-Records
	body   []byte
}

// ask puts a question to a server.
func (s *server) ask(ctx context.Context, q question) (answer, error) {
	path, err := s.fillIn((&url.URL{Path: "/pdb/query/v4" + q.path}).EscapedPath(), q.path)
	if err != nil {
		return answer{}, err
	}
	params := url.Values{}
	for name, values := range q.params {
		for _, value := range values {
			filled, err := s.fillIn(value, value)
			if err != nil {
				return answer{}, err
			}
			params.Add(name, filled)
		}
	}
	if len(params) > 0 {
		path += "?" + params.Encode()
	}
	header := http.Header{"Accept": {"application/json"}}
	if q.body != "" {
		header.Set("Content-Type", "application/json")
	}
	return s.do(ctx, q.method, path, header, []byte(q.body))
}

var placeholder = regexp.MustCompile(`\$\{report (\d+) (\d+)\}`)

// fillIn puts this server's hashes into a text; whole is returned if there are none.
func (s *server) fillIn(whole, text string) (string, error) {
	if !placeholder.MatchString(text) {
		return whole, nil
	}
	missing := ""
	out := placeholder.ReplaceAllStringFunc(text, func(match string) string {
		m := placeholder.FindStringSubmatch(match)
		i, _ := strconv.Atoi(m[1]) // they are digits
		k, _ := strconv.Atoi(m[2])
		hash := s.hashes[node{index: i}.uuid(10+k)]
		if hash == "" {
			missing = match
		}
		return hash
	})
	if missing != "" {
		return "", fmt.Errorf("%s knows no %s", s.name, missing)
	}
	if strings.HasPrefix(whole, "/pdb/query/v4") {
		out = "/pdb/query/v4" + out
	}
	return out, nil
}

// rows are an answer's values in a form that compares: each as a text in which
// 1, 1.0 and "1" differ and the order of keys does not matter.
func (a answer) rows(loosen func(key, text string) (string, bool)) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("no JSON: %w: %.300s", err, a.body)
	}
	if d.More() {
		return nil, fmt.Errorf("more than one JSON value: %.300s", a.body)
	}
	list, many := value.([]any)
	if !many {
		return []string{"not a list: " + plain(value, "", loosen)}, nil
	}
	rows := make([]string, len(list))
	for i, item := range list {
		rows[i] = plain(item, "", loosen)
	}
	return rows, nil
}

// plain writes a value with sorted keys and numbers in one notation.
func plain(value any, key string, loosen func(key, text string) (string, bool)) string {
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, cmp.Compare[string])
		parts := make([]string, len(keys))
		for i, k := range keys {
			parts[i] = strconv.Quote(k) + ": " + plain(v[k], k, loosen)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = plain(item, key, loosen)
		}
		if key == "data" || key == "tags" { // an expanded field, a set: without an order
			slices.Sort(parts)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case json.Number:
		return number(v.String())
	case string:
		if text, loose := loosen(key, v); loose {
			return text
		}
		return strconv.Quote(v)
	}
	text := strings.Replace(fmt.Sprint(value), "<nil>", "null", 1)
	if loosened, loose := loosen(key, text); loose {
		return loosened
	}
	return text
}

// number writes 1.50e1 and 15.0 alike, and 15 not.
func number(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return "float " + strconv.FormatFloat(f, 'g', -1, 64)
}
