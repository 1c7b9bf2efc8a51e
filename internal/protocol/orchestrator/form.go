package orchestrator

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// wireTime is how times are told: some clients read no fractions of seconds.
const wireTime = "2006-01-02T15:04:05Z"

// stamp is a time, or null.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(wireTime)
}

// named is a link to something that has a number.
type named struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// links makes absolute URLs, with the name by which the client called this server.
type links struct{ base string }

// host is what may stand in a URL as the name of a server.
var host = regexp.MustCompile(`^([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)

func linksOf(r *http.Request) links {
	name := r.Host
	if !host.MatchString(name) {
		name = "localhost"
	}
	return links{"https://" + name + Prefix}
}

func (l links) to(parts ...string) string {
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return l.base + "/" + strings.Join(parts, "/")
}

func (l links) numbered(what string, id int64) named {
	name := strconv.FormatInt(id, 10)
	return named{ID: l.base + "/" + what + "/" + name, Name: name}
}

// number reads an id of a path or body.
func (h *base) number(field, text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, h.invalid(field, "it is a number such as 12, not %.40q", text)
	}
	return id, nil
}

// The bounds of pages.
const (
	maxPage     = 1000
	maxAllNodes = 1 << 30 // nodes of a job: all of them, if nobody says how many
)

// paging is which part of a list is wanted.
type paging struct {
	limit, offset int
	order, by     string
}

// paging reads limit, offset, order and order_by. most is the default of limit and its bound.
func (h *base) paging(r *http.Request, most int, columns ...string) (p paging, err error) {
	query := r.URL.Query()
	if p.limit, err = h.count(query, "limit", most, 1); err != nil {
		return p, err
	}
	p.limit = min(p.limit, most)
	if p.offset, err = h.count(query, "offset", 0, 0); err != nil {
		return p, err
	}
	switch p.order = query.Get("order"); p.order {
	case "", "asc", "desc":
	default:
		return p, h.invalid("order", "it is asc or desc, not %.40q", p.order)
	}
	if p.by = query.Get("order_by"); p.by != "" && !slices.Contains(columns, p.by) {
		return p, h.invalid("order_by", "it is %s, not %.40q", strings.Join(columns, ", "), p.by)
	}
	return p, nil
}

// ascending is whether the smallest comes first: with order_by, unless desc is said; otherwise the newest comes first unless asc is.
func (p paging) ascending() bool { return p.order == "asc" || p.order == "" && p.by != "" }

// word is the order by its name.
func (p paging) word() string {
	if p.ascending() {
		return "asc"
	}
	return "desc"
}

// count reads a number that is not below least; missing if it is not there.
func (h *base) count(query url.Values, field string, missing, least int) (int, error) {
	if !query.Has(field) {
		return missing, nil
	}
	n, err := strconv.ParseInt(query.Get(field), 10, 32)
	if err != nil || int(n) < least {
		return 0, h.invalid(field, "it is a number from %d to %d, not %.40q", least, 1<<31-1, query.Get(field))
	}
	return int(n), nil
}

// time reads a time of a query; zero if it is not there.
func (h *base) time(query url.Values, field string) (time.Time, error) {
	text := query.Get(field)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := parseTime(text)
	if err != nil {
		return t, h.invalid(field, "it is a time such as 2026-11-26T20:00:00Z, not %.40q", text)
	}
	return t, nil
}

// parseTime reads ISO 8601 as clients write it; without a zone it is UTC.
func parseTime(text string) (t time.Time, err error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", time.DateOnly} {
		if t, err = time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return t, err
}
