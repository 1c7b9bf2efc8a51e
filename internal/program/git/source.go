// Package git fetches Puppet code from git repositories by running git.
//
// A source is written URL[@REF]: a URL with a scheme (https, http, ssh, git,
// file) or git's short form user@host:path, and a branch, tag or commit; without
// one, what the repository calls its HEAD.
//
// Git is kept from asking questions, from running hooks, from protocols that run
// commands, and from taking longer than its time. Submodules are fetched when
// there are any, by the same rules; a repository from elsewhere cannot name
// directories of this machine as submodules.
//
// Errors: Invalid for a source that is not well written, or that git cannot
// fetch (with git's own words); Unavailable when the time is over. What looks
// like a password never appears in an error.
//
// Concurrency: no state; callers use directories of their own.
package git

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Source is a repository and what is wanted of it.
type Source struct {
	URL string
	Ref string // branch, tag or commit; empty for HEAD
}

const (
	maxURLBytes = 2048
	maxRefBytes = 255
)

var (
	schemes   = []string{"https", "http", "ssh", "git", "file"}
	shortForm = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:[^/\\:]?[^\\]*$`)
)

// Parse splits URL[@REF] and checks both.
func Parse(text string) (Source, error) {
	if len(text) > maxURLBytes {
		return Source{}, fault.New(fault.Invalid, "the source has %d bytes, at most %d are allowed", len(text), maxURLBytes)
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] == 0x7f {
			return Source{}, fault.New(fault.Invalid, "the source holds a space or control character")
		}
	}
	s := split(text)
	if err := checkURL(s.URL); err != nil {
		return Source{}, err
	}
	if s.Ref == "" && s.URL != text {
		return Source{}, fault.New(fault.Invalid, "nothing follows the @ of the source: name a branch, tag or commit")
	}
	return s, checkRef(s.Ref)
}

// split cuts at the last @ of the path: one before it belongs to the user.
func split(text string) Source {
	start := 0
	if i := strings.Index(text, "://"); i >= 0 {
		start = i + len("://")
		slash := strings.IndexByte(text[start:], '/')
		if slash < 0 {
			return Source{URL: text}
		}
		start += slash
	} else if i := strings.IndexByte(text, ':'); i >= 0 {
		start = i
	}
	at := strings.LastIndexByte(text[start:], '@')
	if at < 0 {
		return Source{URL: text}
	}
	return Source{URL: text[:start+at], Ref: text[start+at+1:]}
}

// CheckURL refuses what is no URL of a repository: Invalid.
func CheckURL(text string) error {
	if len(text) > maxURLBytes || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fault.New(fault.Invalid, "the repository's URL is longer than %d bytes, or holds a space or control character", maxURLBytes)
	}
	return checkURL(text)
}

func checkURL(text string) error {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		if strings.HasPrefix(text, "-") || strings.Contains(text, "::") || !shortForm.MatchString(text) {
			return fault.New(fault.Invalid, "the repository is neither a URL nor of the form user@host:path")
		}
		return nil
	}
	if !slices.Contains(schemes, scheme) {
		return fault.New(fault.Invalid, "the repository's URL has a scheme other than %s", strings.Join(schemes, ", "))
	}
	u, err := url.Parse(text)
	if err != nil || rest == "" || strings.HasPrefix(u.Host, "-") || strings.HasPrefix(u.User.Username(), "-") ||
		(u.Host == "") != (scheme == "file") {
		return fault.New(fault.Invalid, "the repository's URL is not well formed")
	}
	return nil
}

var refForm = regexp.MustCompile(`^[A-Za-z0-9_][^ ~^:?*\[\\\x00-\x20\x7f]*$`)

func checkRef(ref string) error {
	switch {
	case ref == "":
		return nil
	case len(ref) > maxRefBytes:
		return fault.New(fault.Invalid, "the branch, tag or commit has %d bytes, at most %d are allowed", len(ref), maxRefBytes)
	case !refForm.MatchString(ref) || strings.Contains(ref, "..") || strings.Contains(ref, "@{") || strings.HasSuffix(ref, ".lock"):
		return fault.New(fault.Invalid, "%.80q is not a branch, tag or commit", ref)
	}
	return nil
}

// String is the source without credentials, for people and records.
func (s Source) String() string {
	text := Redact(s.URL)
	if s.Ref != "" {
		text += "@" + s.Ref
	}
	return text
}

// Redact takes the user and password out of a URL. The user of ssh stays: it
// is no secret, and the URL means nothing without it.
func Redact(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return text
	}
	user, host := authority[:at], authority[at+1:]
	if name, _, hasPassword := strings.Cut(user, ":"); scheme == "ssh" && !hasPassword {
		return scheme + "://" + name + "@" + host + path
	}
	return scheme + "://" + host + path
}
